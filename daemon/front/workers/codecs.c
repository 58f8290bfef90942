/* The codec workers: the start of their processes, their reports on jobs, and their end.
 *
 * They decode untrusted images and may be compromised. Every report is checked against the known
 * facts about the job, and the sender of an impossible one is killed. A job whose worker dies runs
 * once more, from its body. Each run has its own number, which all its messages carry. */
#include "front/workers/codecs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/log.h"
#include "base/loop.h"
#include "filters/chain_gather.h"
#include "front/config/config.h"
#include "front/workers/device_load.h"
#include "front/workers/devices.h"
#include "front/workers/jpeg_router.h"
#include "front/workers/repertoire.h"
#include "process/sandbox.h"
#include "reference/reference.h"

enum {
	CHECK_MS = 200,
	DEATHS_MAX = 2,     /* workers that may die on a job */
	DEATHS_ALL_MAX = 8, /* including those that somebody else killed */
	CANCEL_MS = 2000    /* for a worker to leave a job that has ended */
};

static const struct codec_owner *owner;
static struct loop_timer check;

static void send_answer(struct job *job)
{
	struct message message = {.type = MSG_ANSWER, .answer = {.job = job->options.job}};
	const int fds[] = {job->answer.writer, job->answer.fd};

	worker_limit_files(&job->codec->worker, job->answer.most);
	worker_send(&job->codec->worker, &message, fds);
}

/* Sends the worker the descriptor of the answer's storage, now ready, if the job still runs. */
static void answer_opened(void *context)
{
	struct job *job = context;

	if (job->finished || !job->codec)
		return;
	if (spool_take_file(&job->answer))
		fail_with(job_cancel, job, ERR_IO, "cannot create a file for the answer");
	if (!job->finished && !job->codec->run.answer_late)
		send_answer(job);
}

/* PNM and bare pixels have none. */
static uint64_t metadata_max(const struct job *job)
{
	return format_in(FORMATS_ALWAYS, job->input_format) ? 0 : job->options.body_size;
}

/* Raw pixels and, as some formats have, the body's metadata with each page: an encoded image is
 * rarely larger, and never twice as large. */
static uint64_t answer_expected(const struct job *job, const struct image *answer)
{
	const uint64_t pages = job_pages_read(job, job->pages), most = UINT64_C(1) << 50;
	uint64_t metadata;

	if (job->gathering.kind)
		return job_gathers(job) * sizeof(double);
	if (__builtin_mul_overflow(metadata_max(job), pages, &metadata) || metadata > most)
		metadata = most;
	return image_size(answer) * pages + metadata;
}

/* Opens the answer, in memory if `size` bytes fit there, and tells the worker. */
static void open_answer(struct job *job, uint64_t size)
{
	const enum error e = spool_open_answer(&job->answer, size, job->terms.client);

	if (e)
		fail_with(job_cancel, job, e, "cannot store the answer");
	else if (!spool_await(&job->answer, answer_opened, job))
		answer_opened(job);
}

/* The measured time of reference_cost()'s units. */
static struct load verifying = {.ns_per_unit = 0.2};

/* Charges the job its known cost, and refuses it if the worker cannot compute its pixels before its
 * deadline. Returns true if it has become heavy and too many heavy jobs run. */
static bool reckon(struct codec *c, const struct message_image *m)
{
	struct job *job = c->job;
	const struct chain *chain = job->chain->chain;
	const bool was_heavy = job_is_heavy(job);
	const uint32_t pages = job_pages_read(job, m->pages);
	const uint64_t now = loop_now(), deadline = job->terms.deadline;
	const double left = deadline > now ? (double)(deadline - now) : 0;
	uint32_t width = m->image.width, height = m->image.height;
	double ns, cost, units;

	if (chain_resizing(chain) < chain->count &&
	    chain_output_size(chain, &m->image, &width, &height, NULL))
		width = height = 1; /* a codec worker would have refused it */
	units = cost_of_area(chain, &m->image, width, height) * m->image.bands;
	/* The worker computes the pixels a second time, or alone. */
	job->verify_units = job->options.verify || chain->variant == VARIANT_REFERENCE
	                        ? reference_cost_in_pieces(chain, &m->image) * pages
	                        : 0;
	ns = job->verify_units * verifying.ns_per_unit;
	cost = work_cost_known(job->options.body_size,
	                       (image_size(&m->whole) + image_size(&m->answer)) * pages,
	                       ns + load_together(units * pages));
	if (job_reckon(job, job->spent + cost))
		job_cancel(job, ERR_MEMORY, NULL);
	if (deadline && ns > left)
		fail_with(job_cancel, job, ERR_TOO_LATE,
		          "the computation on the CPU would take about %.3f s, and %.3f s are left",
		          ns * 1e-9, left * 1e-9);
	return !job->finished && !was_heavy && job_is_heavy(job) && runs_too_heavy();
}

/* Returns the reason why no device does the sides that one could; NONE: one does, or none could. */
static enum jpeg_reason jpeg_left(const struct job *job)
{
	return job->jpeg[job->jpeg_form & TILE_DECODE ? JPEG_DECODE : JPEG_ENCODE];
}

/* Checks the part of the image that is filtered: a draft only if the job allows one. */
static bool part_fits(const struct job *job, const struct message_image *m)
{
	const struct draft *d = &m->image.draft;

	return image_valid(&m->image) && image_pixels(&m->image) <= image_pixels(&m->whole) &&
	       (!d->width ||
	        (job->options.draft && d->width == m->whole.width && d->height == m->whole.height));
}

/* Checks a worker's MSG_IMAGE, from which the costs are computed that other jobs wait for. */
static bool image_fits(const struct job *job, const struct message_image *m)
{
	const struct chain *chain = job->chain->chain;
	const uint64_t pages = job_pages_read(job, m->pages), known = chain_pages(chain);
	const uint64_t most = chain_resizing(chain) < chain->count
	                          ? job->options.pixels_max / MAX(pages, 1)
	                          : image_pixels(&m->whole);

	return m->pages && m->input_format < FORMATS && m->jpeg[JPEG_DECODE] < JPEG_REASONS &&
	       m->jpeg[JPEG_ENCODE] < JPEG_REASONS && image_valid(&m->whole) && part_fits(job, m) &&
	       image_valid(&m->answer) &&
	       pages <= job->options.pixels_max / image_pixels(&m->whole) &&
	       image_pixels(&m->answer) <= most &&
	       (!job->gathering.kind || image_planes(&m->image) == 1) && m->tiles &&
	       (known == 1 || (known == pages && m->tiles % pages == 0)) &&
	       m->tiles <= most * image_planes(&m->image) * pages && m->late <= 1 &&
	       (!m->late || m->tiles == 1);
}

/* Chooses the lane for sides that a device can do, unless the request leaves no choice. */
static void choose_jpeg(struct codec *c, const struct message_image *m)
{
	struct job *job = c->job;
	enum jpeg_reason reason;

	if (job->jpeg[JPEG_DECODE])
		return;
	job->jpeg_form = TILE_PIXELS;
	for (enum jpeg_side side = 0; side < JPEG_SIDES; side++) {
		job->jpeg[side] = (enum jpeg_reason)m->jpeg[side];
		job->jpeg_form |= m->jpeg[side] ? 0 : 1 << side;
	}
	if (!job->jpeg_form)
		return;
	reason = jpeg_router_choose(job, &job->image, runs_workers(), &c->run.jpeg_devices);
	if (reason)
		c->run.jpeg_devices = 0;
	job_set_jpeg(job, reason ? reason : JPEG_REASON_FAILED); /* until the tile is back */
}

/* Sizes a chain with shares of the image's size, which this run had to report. Returns true if the
 * worker must drop the run. */
static bool size_to(struct codec *c, const struct message_image *m)
{
	struct problem problem;
	enum error e;

	if (c->job->finished || !chain_has_shares(c->job->asked->chain))
		return false;
	e = job_size_to(c->job, &m->image, &problem);
	if (e)
		job_cancel(c->job, e, &problem);
	return !e;
}

/* Chooses a tile's plan. If each page has its own, all tiles of the page before must be back.
 * Returns false if they are not. Without memory it ends the job. */
static bool choose_plan(struct codec *c, uint32_t tile)
{
	const struct job *job = c->job;
	const uint32_t pages = chain_pages(job->chain->chain), page_tiles = job->tiles / pages;
	const struct image plane = image_plane(&job->image);
	struct shared_chain *shared;
	struct chain *chain;

	if (pages == 1) {
		if (!c->plan)
			c->plan = plan_use(job->chain, &plane);
		return true;
	}
	if (tile % page_tiles)
		return true;
	if (c->tasks)
		return false;
	chain = chain_of_page(job->chain->chain, tile / page_tiles);
	shared = chain ? chain_share(chain) : NULL;
	if (!shared) {
		job_cancel(c->job, ERR_MEMORY, NULL);
		return true;
	}
	if (c->plan)
		plan_release(c->plan);
	c->plan = plan_use(shared, &plane);
	chain_release(shared);
	return true;
}

static bool accept_image(struct codec *c, const struct message_image *m)
{
	struct job *job = c->job;
	struct message whole = {.type = MSG_WHOLE};
	uint64_t size;

	if (!job || m->job != job->options.job || job->image_known || !image_fits(job, m))
		return false;
	if (size_to(c, m) || (!job->finished && reckon(c, m))) {
		codec_give_way(c);
		return true;
	}
	job->whole = m->whole;
	job->image = m->image;
	job->pages = m->pages;
	job->input_format = m->input_format;
	job->image_known = true;
	job->tiles = m->tiles;
	if (!choose_plan(c, 0))
		return false;
	c->run.answer_late = m->late;
	c->run.answer_pixels = image_pixels(&m->answer);
	choose_jpeg(c, m);
	if (job->finished)
		return true;
	size = answer_expected(job, &m->answer);
	whole.whole.job = job->options.job;
	whole.whole.form = job->jpeg_form;
	if (c->run.jpeg_devices)
		worker_send(&c->worker, &whole, NULL);
	if (c->run.jpeg_devices && job->jpeg_form & TILE_ENCODE)
		c->run.answer_max = size;
	else
		open_answer(job, size);
	return true;
}

/* Handles a finished tile that was the whole job, if the device could do it. Opens the answer if
 * the device encoded it: memory is set aside for its actual size, because there is not enough for
 * the maximum of all devices. */
static void whole_done(struct codec *c, const struct task *task,
                       const struct message_tile_done *done)
{
	enum { HEADER_MAX = 1024 };
	struct job *job = task->job;
	const uint64_t max = c->run.answer_max, size = done->size + metadata_max(job) + HEADER_MAX;

	job_set_jpeg(job, done->error        ? JPEG_REASON_FAILED
	                  : done->jpeg_flags ? JPEG_REASON_FLAG
	                                     : JPEG_REASON_NONE);
	if (!done->error && !done->jpeg_flags) {
		job->tiles_done = job->tiles;
		job->jpeg_device = task->device;
	}
	c->run.answer_max = 0;
	if (max && !job->finished)
		open_answer(job, !jpeg_left(job) && size < max ? size : max);
}

void codec_task_done(struct task *task, const struct message_tile_done *done)
{
	struct codec *c = codec_get(task->tile.arena);
	struct job *job = task->job;
	struct message message = {.type = MSG_TILE_DONE, .tile_done = *done};

	if (!--c->tasks && c->job == job)
		job_back(job);
	if (task->tile.form)
		c->run.jpeg_out = false;
	if (c->job == job) { /* still the same run: the next starts only after all tasks are back */
		if (task->tile.form) {
			whole_done(c, task, done);
		} else {
			/* A device that did the whole job has done them all, and is compared. */
			job->tiles_done +=
			    !done->error && !task->prefer && job->tiles_done < job->tiles;
			verified_expect(&c->run.verified, task, &message.tile_done);
		}
		if (c->run.answer_late && !job->finished && job->answer.fd >= 0)
			send_answer(job);
		c->run.answer_late = false;
		worker_send(&c->worker, &message, NULL);
	}
	free(task);
	codec_check_idle(c);
	job_release(job);
}

/* Gives a tile to the scheduler. Returns false if memory runs out. */
static bool codec_run_tile(struct codec *c, const struct tile *tile, uint64_t devices,
                           uint64_t prefer)
{
	struct job *job = c->job;
	struct task *task = calloc(1, sizeof *task);

	if (!task)
		return false;
	task->tile = *tile;
	task->job = job;
	task->plan = c->plan;
	task->prefer = prefer;
	task->devices = devices;
	task->units = cost_of_area(job->chain->chain, &job->image, tile->width, tile->height) *
	              image_plane(&job->image).bands;
	if (tile->form)
		task->units += cost_of_jpeg(&job->image, job->jpeg_form);
	task->item.cost = task->units;
	job_hold(job);
	if (!c->tasks++)
		job->times.out = loop_now();
	owner->task_ready(task);
	return true;
}

static bool accept_tile(struct codec *c, const struct tile *tile)
{
	const struct arena_files *arena = arenas_get(c->worker.number);
	struct job *job = c->job;
	struct image plane;

	if (!job)
		return false;
	plane = image_plane(&job->image);
	if (tile->job != job->options.job || !job->image_known || tile->arena != c->worker.number ||
	    tile->index != c->run.next_tile || c->run.jpeg_out || tile->index >= job->tiles ||
	    c->tasks >= SLOTS_MAX ||
	    !tile_valid(tile, &plane, job->chain->chain, arena->size, arena->size))
		return false;
	if (tile->form) {
		/* It comes once, because the front has agreed to it, and before all others. */
		const uint64_t devices = c->run.jpeg_devices;

		if (!devices || c->run.next_tile || tile->form != job->jpeg_form)
			return false;
		c->run.jpeg_devices = 0;
		c->run.jpeg_out = true;
		return codec_run_tile(c, tile, devices, 0);
	}
	if (tile->index && !choose_plan(c, tile->index))
		return false;
	c->run.next_tile++;
	return codec_run_tile(c, tile, job->terms.devices, 0);
}

/* Checks a worker's MSG_JOB_DONE against the job. spool_settle() checks the answer's size. */
static bool done_fits(const struct job *job, const struct message_job_done *m)
{
	enum { THREADS_MAX = 64 }; /* that a worker keeps busy */
	const uint64_t ns_max = (loop_now() - job->times.started + 1000000000) * THREADS_MAX;

	return m->error < ERR_COUNT && m->format < FORMATS && m->input_format < FORMATS &&
	       m->lost < 1u << LOSSES && m->decode_ns <= ns_max && m->encode_ns <= ns_max &&
	       m->verify_ns <= ns_max && m->reference_ns <= ns_max &&
	       m->jpeg < (jpeg_left(job) ? 1 : JPEG_CHECKS) && m->kept <= 1 &&
	       (m->error || (m->format != FORMAT_NONE && image_valid(&m->image) &&
	                     (job->answer.fd >= 0 || job->finished)));
}

static bool accept_done(struct codec *c, const struct message_job_done *m)
{
	struct job *job = c->job;
	struct problem problem = m->problem;

	if (!job || m->job != job->options.job || !done_fits(job, m))
		return false;
	job->format = m->format;
	job->result = m->image;
	job->lost = m->lost;
	job->answer_size = m->answer_size;
	c->kept = m->kept;
	job->times.decode += m->decode_ns;
	job->times.encode += m->encode_ns;
	job->times.verify += m->verify_ns;
	job->times.reference += m->reference_ns;
	if (!m->error) /* the worker may report anything */
		load_learn(&verifying, job->verify_units, m->verify_ns + m->reference_ns);
	verifying.ns_per_unit = fmin(verifying.ns_per_unit, 100);
	if (!m->error && job->image_known && job->jpeg_form && !m->jpeg)
		jpeg_router_learn(job);
	if (m->jpeg == JPEG_DIFFERS)
		jpeg_router_distrust(job->jpeg_device);
	if (m->jpeg)
		job_set_jpeg(job, JPEG_REASON_CHECK);
	if (!m->error && (job->finished || spool_release(&job->answer)))
		return codec_settle_job(c);
	if (!m->error) {
		/* The worker has kept a way to write, or the system does not tell. The answer then
		 * counts only once the worker has ended. */
		c->ending = true;
		worker_stop(&c->worker);
		worker_resume(&c->worker);
		return true;
	}
	problem.parameter[sizeof problem.parameter - 1] = '\0';
	problem.value[sizeof problem.value - 1] = '\0';
	problem.detail[sizeof problem.detail - 1] = '\0';
	codec_end_job(c, (enum error)m->error, &problem);
	return true;
}

static bool accept_verified(struct codec *c, const struct message_verified *found)
{
	struct finding finding;

	if (!c->job || found->job != c->job->options.job ||
	    !verified_take(&c->run.verified, c->job, found, &finding))
		return false;
	if (finding.doubtful)
		device_examine(finding.device, c->plan, &finding.kernels);
	if (finding.differs)
		device_distrust(finding.device, c->plan, &finding.kernels);
	return !finding.again || c->job->finished ||
	       codec_run_tile(c, finding.again, c->job->terms.devices, finding.prefer);
}

static void codec_prepare(const struct worker *, struct start *start)
{
	start->memory = config->codec_memory;
	start->formats = repertoire_allowed();
}

static void codec_up(struct worker *worker, const struct message_ready *ready)
{
	repertoire_take(&ready->formats);
	arenas_tell(worker->number, worker, false);
	runs_wake();
}

static void codec_message(struct worker *worker, const struct message *message)
{
	struct codec *c = codec_get(worker->number);
	bool valid = false;

	/* The last messages on a job that has given way are ignored. */
	if (c->dropped && message->type == MSG_TILE) {
		valid = message->tile.tile.job == c->dropped;
	} else if (c->dropped) {
		valid = message->type == MSG_JOB_DONE && message->job_done.job == c->dropped;
		if (valid) {
			c->dropped = 0;
			codec_check_idle(c);
		}
	} else if (message->type == MSG_IMAGE) {
		valid = accept_image(c, &message->image);
	} else if (message->type == MSG_TILE) {
		valid = accept_tile(c, &message->tile.tile);
	} else if (message->type == MSG_VERIFIED) {
		valid = accept_verified(c, &message->verified);
	} else if (message->type == MSG_JOB_DONE) {
		valid = accept_done(c, &message->job_done);
	}
	if (!valid)
		worker_refuse(worker, message_name(message->type));
}

/* Returns the largest processor time of a run, in nanoseconds: many times that of any honest image
 * (docs/benchmarks.md, measurements). Up to the first tile that is decoding alone; encoders take
 * longer, and the pixels that the worker must filter or compare are known. No format's cost is
 * predicted, because a file may refer to a picture ten thousand times. It is also no timer in the
 * worker, which a worker that has been taken over could stop. */
static double time_max(const struct codec *c)
{
	const double decode_ns = 2e9, decode_pixel_ns = 5e3, encode_ns = 3e9, encode_pixel_ns = 2e4,
	             unit_ns = 4;
	const struct job *job = c->job;
	/* A frame may need all before it. PAGES_ALL is a larger number than any page's. */
	const double pages = fmax(1, fmin(job->options.page, job->pages));
	const double pixels = job->image_known ? (double)image_pixels(&job->whole) * pages : 0;
	double max = decode_ns + decode_pixel_ns * pixels;

	if (c->run.next_tile || job->verify_units > 0)
		max += encode_ns +
		       encode_pixel_ns * fmax(pixels, (double)c->run.answer_pixels * pages);
	max +=
	    unit_ns * (job->verify_units + (double)c->run.next_tile * (double)config->verify_taps);
	return SANITIZER ? 20 * max : max;
}

/* Handles a worker's death during its job. The image is blamed if this happens twice and nobody
 * else killed the workers; a worker killed at a limit of time ends the job at once. */
static void codec_lose_job(struct codec *c, const char *reason)
{
	struct job *job = c->job;
	struct problem problem = {0};
	enum error e = job->error;

	if (!job->finished && !strcmp(reason, "complex")) {
		e = problem_set(&problem, ERR_TOO_COMPLEX,
		                "the image takes more processor time than one of its size may; the "
		                "limit is %.1f s",
		                time_max(c) * 1e-9);
	} else if (!job->finished && !strcmp(reason, "timeout")) {
		e = problem_set(&problem, ERR_TIMEOUT, "the job was ended after %" PRIu64 " s",
		                config->job_timeout);
	} else if (!job->finished) {
		job->deaths++;
		job->excused += worker_was_killed(reason);
		if (job->deaths - job->excused < DEATHS_MAX && job->deaths < DEATHS_ALL_MAX) {
			log_notice("job %" PRIu64 ": %s ended (%s); the job runs once more",
			           job->id, c->worker.name, reason);
			codec_return_job(c);
			return;
		}
		e = problem_set(&problem, ERR_DECODER_DIED,
		                "two processes in a row ended while decoding this image (the last: "
		                "%s); it may be damaged or malicious",
		                reason);
	}
	codec_end_job(c, e, &problem);
}

static void codec_down(struct worker *worker, const char *reason)
{
	struct codec *c = codec_get(worker->number);
	bool settled = c->job && c->ending && reason != WORKER_LOST && codec_settle_job(c);

	if (reason == WORKER_LOST)
		worker_stop(worker); /* resumed when its arena has been replaced */
	c->dropped = 0;
	c->ending = false;
	if (c->job && !settled)
		codec_lose_job(c, reason);
	else
		codec_check_idle(c);
}

void codecs_retire(unsigned arena)
{
	struct codec *c = codec_get(arena);

	if (c->worker.stopped)
		return;
	log_warning("%s gets a new arena: a process that cannot be killed may still write to the "
	            "old one",
	            c->worker.name);
	worker_stop(&c->worker);
	if (c->job && !c->job->finished)
		codec_return_job(c);
}

/* While it waits for tiles, it need not use processor time. */
static bool codec_busy(const struct worker *worker)
{
	const struct codec *c = codec_get(worker->number);

	return c->dropped || (c->job && !c->tasks);
}

static const struct worker_owner codec_worker = {
    .kind = "codec",
    .program = "convolved-codec",
    .prepare = codec_prepare,
    .up = codec_up,
    .message = codec_message,
    .down = codec_down,
    .busy = codec_busy,
};

/* Kills workers that have not left a job after CANCEL_MS, or whose job has taken too much time. */
static void check_jobs(void *)
{
	const uint64_t limit = config->job_timeout * 1000000000u, now = loop_now();
	const uint64_t cancelled = now - CANCEL_MS * UINT64_C(1000000);

	struct codec *c;

	for (unsigned i = 0; (c = codec_get(i)); i++) {
		const struct job *job = c->job;

		if ((c->dropped && c->dropped_at < cancelled) ||
		    (job && job->finished && job->times.finished < cancelled))
			worker_kill(&c->worker, "cancelled");
		else if (job && !job->finished &&
		         (double)(c->worker.stall.worked_ns - c->run.worked) > time_max(c))
			worker_kill(&c->worker, "complex");
		else if (job && now - job->times.started > limit)
			worker_kill(&c->worker, "timeout");
		else if (c->worker.stopped) /* its arena could not be opened: try again */
			codec_check_idle(c);
	}
}

enum error codecs_init(const struct codec_owner *o)
{
	enum error e = loop_timer_init(&check, check_jobs, NULL);

	owner = o;
	repertoire_init();
	runs_init(o);
	if (e)
		return e;
	loop_timer_repeat(&check, CHECK_MS);
	return codecs_add(&codec_worker);
}

void codecs_reload(void)
{
	struct codec *c;

	for (unsigned i = 0; (c = codec_get(i)); i++)
		codec_check_idle(c);
	if (codecs_add(&codec_worker))
		log_warning("fewer codec workers run than configured");
}

/* Also ends jobs that are still open; their clients have gone. */
void codecs_fini(void)
{
	struct job *waiting;
	struct codec *c;

	while ((waiting = job_next_waiting(~0u)))
		job_finish(waiting, ERR_DRAINING, NULL);
	for (unsigned i = 0; (c = codec_get(i)); i++)
		worker_fini(&c->worker);
	runs_fini();
	loop_timer_fini(&check);
}
