/* Codec workers decode untrusted images and may be compromised. Every report is checked against
 * what is known of the job; an impossible report is rejected, and codecs.c kills its sender. */
#include "front/workers/codec_reports.h"

#include <math.h>
#include <stdlib.h>

#include "base/loop.h"
#include "filters/chain_gather.h"
#include "front/workers/device_load.h"
#include "front/workers/jpeg_router.h"
#include "front/workers/supervisor.h"
#include "reference/reference.h"

static const struct codec_owner *owner;

void codec_reports_init(const struct codec_owner *o)
{
	owner = o;
}

static void send_answer(struct job *job)
{
	struct message message = {.type = MSG_ANSWER, .answer = {.job = job->options.job}};
	const int fds[] = {job->answer.writer, job->answer.fd};

	worker_limit_files(&job->codec->worker, job->answer.most);
	worker_send(&job->codec->worker, &message, fds);
}

/* The answer's storage is ready: sends the worker its descriptor, if the job still runs. */
static void answer_opened(void *context)
{
	struct job *job = context;
	struct problem problem;

	if (job->finished || !job->codec)
		return;
	if (spool_take_file(&job->answer))
		job_cancel(job,
		           problem_set(&problem, ERR_IO, "cannot create a file for the answer"),
		           &problem);
	if (!job->finished && !job->codec->answer_late)
		send_answer(job);
}

/* PNM and bare pixels have none. */
static uint64_t metadata_max(const struct job *job)
{
	return format_in(FORMATS_ALWAYS, job->input_format) ? 0 : job->options.body_size;
}

/* Raw pixels and, as some formats have it, the body's metadata with each page: an encoded image is
 * rarely larger, and never twice as large. Numbers have their own size. */
static uint64_t answer_expected(const struct job *job, const struct image *answer)
{
	const uint64_t pages = job_pages_read(job, job->pages), most = UINT64_C(1) << 50;
	uint64_t metadata;

	if (job->gather)
		return job_gathers(job) * sizeof(double);
	if (__builtin_mul_overflow(metadata_max(job), pages, &metadata) || metadata > most)
		metadata = most;
	return image_size(answer) * pages + metadata;
}

/* Opens the answer, in memory if so many bytes fit there, and tells the worker. */
static void open_answer(struct job *job, uint64_t size)
{
	enum error error = spool_open_answer(&job->answer, size, job->terms.client);
	struct problem problem;

	if (error)
		job_cancel(job, problem_set(&problem, error, "cannot store the answer"), &problem);
	else if (!spool_await(&job->answer, answer_opened, job))
		answer_opened(job);
}

/* The measured time of one of reference_cost()'s units: a running estimate of what codec workers
 * report, bounded because they may report anything. */
static double verify_unit_ns = 0.2;

/* A job's weight grows with its size: small ones measure more than their samples. */
static void learn_verify(const struct job *job, uint64_t ns)
{
	const double units = job->verify_units, measured = (double)ns / fmax(units, 1);
	const double weight = units / (units + 1e8);

	if (ns && units > 0)
		verify_unit_ns +=
		    weight * (fmin(fmin(measured, 4 * verify_unit_ns), 100) - verify_unit_ns);
}

/* The predicted time of the run's pixels in the codec worker: of a second computation, or the only
 * one. */
static double verify_ns(struct job *job, const struct message_image *m)
{
	const struct chain *chain = job->chain->chain;

	job->verify_units = 0;
	if (job->options.verify || chain->variant == VARIANT_REFERENCE)
		job->verify_units =
		    reference_cost_in_pieces(chain, &m->image) * job_pages_read(job, m->pages);
	return job->verify_units * verify_unit_ns;
}

/* Refuses a job whose deadline comes before the codec worker could have computed its pixels. */
static void check_deadline(struct job *job, double ns)
{
	const uint64_t now = loop_now(), deadline = job->terms.deadline;
	const double left = deadline > now ? (double)(deadline - now) : 0;
	struct problem problem;

	if (deadline && ns > left)
		job_cancel(job,
		           problem_set(&problem, ERR_TOO_LATE,
		                       "the computation on the CPU would take about %.3f s, and "
		                       "%.3f s are left",
		                       ns * 1e-9, left * 1e-9),
		           &problem);
}

/* Charges the job its known cost. Returns true if it has become heavy and too many heavy jobs
 * run. */
static bool reckon(struct codec *c, const struct message_image *m)
{
	struct job *job = c->job;
	const bool was_heavy = job_is_heavy(job);
	const uint32_t pages = job_pages_read(job, m->pages);
	const double ns = verify_ns(job, m);
	const double units =
	    cost_of_area(job->chain->chain, m->image.width, m->image.height) * m->image.bands;
	const double cost = work_cost_known(
	    job->options.body_size, (image_size(&m->whole) + image_size(&m->answer)) * pages,
	    ns + owner->device_ns(units * pages));

	if (job_reckon(job, job->spent + cost))
		job_cancel(job, ERR_MEMORY, NULL);
	check_deadline(job, ns);
	return !job->finished && !was_heavy && job_is_heavy(job) && runs_too_heavy();
}

static uint64_t pixels(const struct image *image)
{
	return (uint64_t)image->width * image->height;
}

/* The reason why no device does the sides that one could do; NONE: one does, or there are none. */
static enum jpeg_reason jpeg_left(const struct job *job)
{
	return job->jpeg[job->jpeg_form & TILE_DECODE ? JPEG_DECODE : JPEG_ENCODE];
}

/* Checks a worker's MSG_IMAGE: the costs that other jobs wait for are computed from it. */
static bool image_fits(const struct job *job, const struct message_image *m)
{
	const uint64_t pages = job_pages_read(job, m->pages),
	               known = chain_pages(job->chain->chain);

	return m->pages && m->input_format < FORMATS && m->jpeg[JPEG_DECODE] < JPEG_REASONS &&
	       m->jpeg[JPEG_ENCODE] < JPEG_REASONS && image_valid(&m->whole) &&
	       image_valid(&m->image) && image_valid(&m->answer) &&
	       pages <= job->options.pixels_max / pixels(&m->whole) &&
	       pixels(&m->image) <= pixels(&m->whole) && pixels(&m->answer) <= pixels(&m->whole) &&
	       (!job->gather || image_planes(&m->image) == 1) && m->tiles &&
	       (known == 1 || (known == pages && m->tiles % pages == 0)) &&
	       m->tiles <= pixels(&m->image) * image_planes(&m->image) * pages && m->late <= 1 &&
	       (!m->late || m->tiles == 1);
}

/* Chooses who does the sides that a device can do, unless the request leaves no choice. */
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
	reason = jpeg_router_choose(job, &job->image, runs_workers(), &c->jpeg_devices);
	if (reason)
		c->jpeg_devices = 0;
	job_set_jpeg(job, reason ? reason : JPEG_REASON_FAILED); /* until the tile is back */
}

/* Sizes a chain with shares of the image's size, which this run was to tell. Returns true if the
 * worker is to drop the run. */
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

/* Has the tiles that follow filtered as those of a page; none before them is out. False without
 * memory. */
static bool use_page(struct codec *c, uint32_t page)
{
	const struct image plane = image_plane(&c->job->image);
	struct chain *chain = chain_of_page(c->job->chain->chain, page);
	struct shared_chain *shared = chain ? chain_share(chain) : NULL;

	if (!shared)
		return false;
	if (c->plan)
		plan_release(c->plan);
	c->plan = plan_use(shared, &plane);
	chain_release(shared);
	return true;
}

/* Chooses the plan of a tile. Where each page has its own, all tiles of the page before must be
 * back. */
static bool choose_plan(struct codec *c, uint32_t tile)
{
	const struct job *job = c->job;
	const uint32_t pages = chain_pages(job->chain->chain), page_tiles = job->tiles / pages;
	const struct image plane = image_plane(&job->image);

	if (pages > 1)
		return tile % page_tiles || (!c->tasks && use_page(c, tile / page_tiles));
	if (!c->plan)
		c->plan = plan_use(job->chain, &plane);
	return true;
}

/* Agrees to the job, whose answer may have so many bytes. */
static void agree(struct codec *c, uint64_t size)
{
	struct job *job = c->job;
	struct message message = {.type = MSG_WHOLE,
	                          .whole = {.job = job->options.job, .form = job->jpeg_form}};

	if (c->jpeg_devices)
		worker_send(&c->worker, &message, NULL);
	if (c->jpeg_devices && job->jpeg_form & TILE_ENCODE)
		c->answer_max = size;
	else
		open_answer(job, size);
}

static bool accept_image(struct codec *c, const struct message_image *m)
{
	struct job *job = c->job;

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
	c->answer_late = m->late;
	choose_jpeg(c, m);
	if (!job->finished)
		agree(c, answer_expected(job, &m->answer));
	return true;
}

/* The whole job, if the device could. */
static void whole_done(const struct task *task, const struct message_tile_done *done)
{
	struct job *job = task->job;

	job_set_jpeg(job, done->error        ? JPEG_REASON_FAILED
	                  : done->jpeg_flags ? JPEG_REASON_FLAG
	                                     : JPEG_REASON_NONE);
	if (done->error || done->jpeg_flags)
		return;
	job->tiles_done = job->tiles;
	job->jpeg_device = task->device;
}

/* Opens the answer that a device was to encode. Memory is set aside for what it takes: for what it
 * might have taken, there would not be enough for all that devices hold. */
static void open_encoded(struct codec *c, const struct message_tile_done *done)
{
	enum { HEADER_MAX = 1024 };
	const uint64_t max = c->answer_max, size = done->size + metadata_max(c->job) + HEADER_MAX;

	c->answer_max = 0;
	if (max && !c->job->finished)
		open_answer(c->job, !jpeg_left(c->job) && size < max ? size : max);
}

void codec_task_done(struct task *task, const struct message_tile_done *done)
{
	struct codec *c = codec_get(task->tile.arena);
	struct job *job = task->job;
	struct message message = {.type = MSG_TILE_DONE, .tile_done = *done};

	if (!--c->tasks && c->job == job)
		job_back(job);
	if (task->tile.form)
		c->jpeg_out = false;
	if (c->job == job) { /* still the same run: the next starts only after all tasks are back */
		if (task->tile.form) {
			whole_done(task, done);
			open_encoded(c, done);
		} else {
			job->tiles_done += !done->error && !task->prefer;
			verified_expect(&c->verified, task, &message.tile_done);
		}
		if (c->answer_late && !job->finished && job->answer.fd >= 0)
			send_answer(job);
		c->answer_late = false;
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
	task->units = cost_of_area(job->chain->chain, tile->width, tile->height) *
	              image_plane(&job->image).bands;
	if (tile->form)
		task->units += cost_of_jpeg(&job->image, job->jpeg_form);
	task->item.cost = task->units;
	job_hold(job);
	if (!c->tasks++)
		job_out(job);
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
	    tile->index != c->next_tile || c->jpeg_out || tile->index >= job->tiles ||
	    c->tasks >= SLOTS_MAX ||
	    !tile_valid(tile, &plane, job->chain->chain, arena->size, arena->size))
		return false;
	if (tile->form) {
		/* It comes once, as the front has agreed to it, and before all others. */
		const uint64_t devices = c->jpeg_devices;

		if (!devices || c->next_tile || tile->form != job->jpeg_form)
			return false;
		c->jpeg_devices = 0;
		c->jpeg_out = true;
		return codec_run_tile(c, tile, devices, 0);
	}
	if (tile->index && !choose_plan(c, tile->index))
		return false;
	c->next_tile++;
	return codec_run_tile(c, tile, job->terms.devices, 0);
}

/* Checks reported times: no worker keeps more than THREADS_MAX threads busy. */
static bool times_fit(const struct job *job, const struct message_job_done *m)
{
	enum { THREADS_MAX = 64 };
	uint64_t max = (loop_now() - job->times.started + 1000000000) * THREADS_MAX;

	return m->decode_ns <= max && m->encode_ns <= max && m->verify_ns <= max &&
	       m->reference_ns <= max;
}

/* Checks a worker's MSG_JOB_DONE against the job. spool_settle() checks the answer's size. */
static bool done_fits(const struct job *job, const struct message_job_done *m)
{
	return job && m->job == job->options.job && m->error < ERR_COUNT && m->format < FORMATS &&
	       m->input_format < FORMATS && m->lost < 1u << LOSSES && times_fit(job, m) &&
	       m->jpeg < (jpeg_left(job) ? 1 : JPEG_CHECKS) && m->kept <= 1 &&
	       (m->error || (m->format != FORMAT_NONE && image_valid(&m->image) &&
	                     (job->answer.fd >= 0 || job->finished)));
}

static bool accept_done(struct codec *c, const struct message_job_done *m)
{
	struct job *job = c->job;
	struct problem problem = m->problem;

	if (!done_fits(job, m))
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
	if (!m->error)
		learn_verify(job, m->verify_ns + m->reference_ns);
	if (!m->error && job->jpeg_form && !m->jpeg)
		jpeg_router_learn(job);
	if (m->jpeg == JPEG_DIFFERS)
		jpeg_router_distrust(job->jpeg_device);
	if (m->jpeg)
		job_set_jpeg(job, JPEG_REASON_CHECK);
	if (!m->error && (job->finished || spool_release(&job->answer)))
		return codec_settle_job(c);
	if (!m->error) {
		/* The worker has kept what it can write to, or the system does not tell. So the
		 * answer counts only once the worker has ended. */
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
	    !verified_take(&c->verified, c->job, found, &finding))
		return false;
	if (finding.doubtful)
		owner->doubted(finding.device, c->plan, &finding.kernels);
	if (finding.differs)
		owner->distrusted(finding.device, c->plan, &finding.kernels);
	return !finding.again || c->job->finished ||
	       codec_run_tile(c, finding.again, c->job->terms.devices, finding.prefer);
}

/* Ignores the last messages on a job that has given way. */
static bool accept_dropped(struct codec *c, const struct message *message)
{
	bool tile = message->type == MSG_TILE && message->tile.tile.job == c->dropped;
	bool done = message->type == MSG_JOB_DONE && message->job_done.job == c->dropped;

	if (done) {
		c->dropped = 0;
		codec_check_idle(c);
	}
	return tile || done;
}

bool codec_reports_take(struct codec *c, const struct message *message)
{
	if (c->dropped)
		return accept_dropped(c, message);
	if (message->type == MSG_IMAGE)
		return accept_image(c, &message->image);
	if (message->type == MSG_TILE)
		return accept_tile(c, &message->tile.tile);
	if (message->type == MSG_VERIFIED)
		return accept_verified(c, &message->verified);
	return message->type == MSG_JOB_DONE && accept_done(c, &message->job_done);
}
