/* Codec workers: each has an arena for life and one job at a time.
 *
 * What a job costs is known once its image's header has been read. One that turns out to be heavy
 * while other heavy jobs have all the workers that they may have gives way: its worker is told to
 * drop it, having decoded nothing yet, and it waits for its turn among the heavy ones.
 *
 * The hard part is the end of a job. Its tiles may still be on a device, which writes into the
 * arena; so the arena has its next job only when every task is back, even if the codec process
 * that asked for them is long gone.
 *
 * A job whose worker dies runs once more, from its body. Each run has a number of its own, which
 * all messages carry.
 *
 * Workers come and go at the end of the array. One above the configured number takes no job, is
 * ended when it has none, and its arena is closed when its process has been reaped. */
#include "front/codecs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/log.h"
#include "front/loop.h"
#include "front/metrics.h"
#include "front/supervisor.h"
#include "front/verified.h"

enum {
	CHECK_MS = 200,
	DEATHS_MAX = 2,  /* workers that a job may take with it */
	DEATHS_MOST = 8, /* with those that somebody else killed */
	CANCEL_MS = 2000 /* that a worker has to let go of a job that has ended */
};

struct codec {
	struct worker worker;
	struct codec_arena arena;
	struct job *job;     /* that it works on; holds a reference */
	uint64_t dropped;    /* run of a job that has given way, until the worker has left it */
	uint64_t dropped_at; /* loop_now() */
	bool ending;         /* its last job is done, but for the end of the process */
	unsigned tasks;      /* that are not back */
	struct plan *plan;   /* that these go through, or NULL */
	uint32_t next_tile;  /* index that the next MSG_TILE must have */
	struct verified_tiles verified;
};

static const struct config *config;
static const struct codec_owner *owner;
static struct codec *codecs;
static unsigned codec_count; /* that have ever been started */
static struct loop_timer check;

/* How many of them take jobs. */
static unsigned codecs_active(void)
{
	return config->codecs < codec_count ? (unsigned)config->codecs : codec_count;
}

static bool codec_is_surplus(const struct codec *c)
{
	return c->worker.number >= config->codecs;
}

const struct codec_arena *codec_arena(unsigned i)
{
	return i < codec_count && codecs[i].arena.in >= 0 ? &codecs[i].arena : NULL;
}

static void codec_start_job(struct codec *c, struct job *job)
{
	struct message message = {.type = MSG_JOB, .job = job->options};
	int fds[] = {job->body.fd, job->chain->fd};

	message.job.arena = c->worker.number;
	message.job.samples_max = owner->samples_max(job->chain->chain);
	message.job.verify_share = config->verify_share;
	message.job.verify_taps = config->verify_taps;
	c->job = job;
	c->next_tile = 0;
	c->verified = (struct verified_tiles){0};
	job->codec = c;
	job_hold(job);
	job->times.started = loop_now();
	metric_observe(METRIC_STAGE_DURATION, "queue", NULL,
	               (double)(job->times.started - job->times.accepted) * 1e-9);
	worker_send(&c->worker, &message, fds); /* if that fails, down() follows */
}

static bool codec_is_idle(const struct codec *c)
{
	return c->worker.state == WORKER_UP && !c->job && !c->tasks && !c->dropped;
}

static unsigned heavy_jobs(void)
{
	unsigned heavy = 0;

	for (unsigned i = 0; i < codecs_active(); i++)
		heavy += codecs[i].job && job_is_heavy(codecs[i].job);
	return heavy;
}

/* Heavy jobs together leave one codec worker to the others. */
static unsigned heavy_most(void)
{
	return codecs_active() > 1 ? codecs_active() - 1 : 1;
}

void codecs_wake(void)
{
	for (unsigned i = 0; i < codecs_active() && jobs_waiting(); i++) {
		struct job *job;

		if (!codec_is_idle(&codecs[i]))
			continue;
		job = job_next_waiting(heavy_jobs() >= heavy_most());
		if (!job)
			return;
		codec_start_job(&codecs[i], job);
	}
}

/* What is not open is -1. */
static void arena_close(struct codec_arena *arena)
{
	int *const fds[] = {&arena->in, &arena->in_read_only, &arena->out};

	for (int i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* Ends a codec worker that has no job and is to have none: first its process, then, called again,
 * its arena. */
static void codec_end(struct codec *c)
{
	worker_stop(&c->worker);
	if (c->worker.state != WORKER_STOPPED || c->arena.in < 0)
		return;
	arena_close(&c->arena);
	owner->arena_closed(c->worker.number);
}

static enum error arena_open(struct codec_arena *arena)
{
	uint64_t size = config->arena_size / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
	enum error e;

	*arena = (struct codec_arena){-1, -1, -1, size, size};
	e = arena_create("tiles-in", size, &arena->in);
	if (!e)
		e = arena_reopen_read_only(arena->in, &arena->in_read_only);
	if (!e)
		e = arena_create("tiles-out", size, &arena->out);
	if (e) {
		log_error("there is no room for an arena: %m");
		arena_close(arena);
	}
	return e;
}

/* One that was ended is wanted again: with a new arena. */
static void codec_resume(struct codec *c)
{
	if (arena_open(&c->arena))
		return;
	owner->arena_opened(c->worker.number);
	worker_resume(&c->worker);
}

/* The arena is free again when no task of the ended job is out. One that is stopped though it is
 * not surplus gets a new one. */
static void codec_check_idle(struct codec *c)
{
	if (c->job || c->tasks || c->dropped)
		return;
	if (c->plan)
		plan_release(c->plan);
	c->plan = NULL;
	if (codec_is_surplus(c) || c->worker.stopped)
		codec_end(c);
	if (!codec_is_surplus(c) && c->worker.stopped && c->arena.in < 0)
		codec_resume(c);
	codecs_wake();
}

/* Puts the worker's job back into the queue, to run from the start; devices may yet hold tiles of
 * this run. */
static void codec_return_job(struct codec *c)
{
	struct job *job = c->job;

	c->job = NULL;
	job->codec = NULL;
	owner->job_ended(job);
	job_restart(job);
	job_release(job);
	codec_check_idle(c);
}

/* Takes the job, of which nothing but the header has been read, from its worker. */
static void codec_give_way(struct codec *c)
{
	struct message message = {.type = MSG_CANCEL, .cancel = {c->job->options.job}};
	struct job *job = c->job;

	c->dropped = job->options.job;
	c->dropped_at = loop_now();
	codec_return_job(c);
	worker_send(&c->worker, &message, NULL);
}

static void codec_end_job(struct codec *c, enum error error, const struct problem *problem)
{
	struct job *job = c->job;

	c->job = NULL;
	job->codec = NULL;
	owner->job_ended(job);
	job_finish(job, error, problem);
	job_release(job);
	codec_check_idle(c);
}

void codecs_cancel(struct job *job, enum error error, const struct problem *problem)
{
	struct message message = {.type = MSG_CANCEL, .cancel = {job->options.job}};

	if (job->finished)
		return;
	if (!job_leave_queue(job))
		worker_send(&job->codec->worker, &message, NULL);
	job_finish(job, error, problem);
}

static void job_late(struct job *job)
{
	struct problem problem;

	codecs_cancel(job,
	              problem_set(&problem, ERR_DEADLINE,
	                          "the job was not done %.3f s after its image had come",
	                          (double)(loop_now() - job->times.accepted) * 1e-9),
	              &problem);
}

static void codec_task_done(struct task *task, const struct message_tile_done *done)
{
	struct codec *c = &codecs[task->tile.arena];
	struct job *job = task->job;
	struct message message = {.type = MSG_TILE_DONE, .tile_done = *done};

	c->tasks--;
	if (c->job == job) { /* the same run: the next begins when all tasks are back */
		job->tiles_done += !done->error && !task->prefer;
		verified_expect(&c->verified, task, &message.tile_done);
		worker_send(&c->worker, &message, NULL);
	}
	free(task);
	codec_check_idle(c);
	job_release(job);
}

/* No answer is larger: a pixel takes 16 bytes, and some more where they cannot be packed; metadata
 * is the body's. */
static uint64_t largest_answer(void)
{
	return config->max_pixels * 18 + config->max_body + (64 << 20);
}

static void codec_prepare(struct worker *worker)
{
	char memory[32], file[32];

	snprintf(memory, sizeof memory, "%llu", (unsigned long long)config->codec_memory);
	snprintf(file, sizeof file, "%llu", (unsigned long long)largest_answer());
	worker->start_ms = config->start_timeout * 1000;
	worker_argument(worker, "convolved-codec", NULL);
	worker_argument(worker, "--log-level", config->log_level);
	worker_argument(worker, "--memory", memory);
	worker_argument(worker, "--file-size", file);
}

static void codec_up(struct worker *worker, const struct message_ready *ready)
{
	struct codec *c = &codecs[worker->number];
	struct message message = {.type = MSG_ARENA,
	                          .arena = {.arena = worker->number,
	                                    .in_size = c->arena.in_size,
	                                    .out_size = c->arena.out_size}};
	int fds[] = {c->arena.in, c->arena.out};

	(void)ready;
	if (worker_send(worker, &message, fds))
		codecs_wake();
}

/* The answer is there to be written, if the job still wants one. */
static void answer_opened(void *context)
{
	struct job *job = context;
	struct message message = {.type = MSG_ANSWER, .answer = {job->options.job}};
	struct problem problem;

	if (job->finished || !job->codec)
		return;
	if (spool_take_file(&job->answer))
		codecs_cancel(job, problem_set(&problem, ERR_IO, "there is no file for the answer"),
		              &problem);
	else
		worker_send(&job->codec->worker, &message, &job->answer.fd);
}

/* Opens the answer, and tells the worker. It lies in memory if it would do so as bare pixels, with
 * the body's metadata: a coded image is hardly ever larger. */
static void open_answer(struct job *job, const struct image *answer)
{
	uint64_t size = image_size(answer) + job->options.body_size;
	enum error error = spool_open_answer(&job->answer, size);
	struct problem problem;

	if (error)
		codecs_cancel(job, problem_set(&problem, error, "there is no room for the answer"),
		              &problem);
	else if (!spool_await(&job->answer, answer_opened, job))
		answer_opened(job);
}

/* What the job costs, now that the image is known. */
static double job_cost_known(const struct job *job, const struct message_image *m)
{
	double units =
	    chain_work(job->chain->chain, m->image.width, m->image.height) * m->image.bands;

	return work_cost_known(job->options.body_size,
	                       image_size(&m->whole) + image_size(&m->answer),
	                       owner->device_ns(units));
}

/* Charges the job for what it costs. True if it has become one of too many heavy ones. */
static bool reckon(struct codec *c, const struct message_image *m)
{
	bool was_heavy = job_is_heavy(c->job);

	if (job_reckon(c->job, job_cost_known(c->job, m)))
		codecs_cancel(c->job, ERR_MEMORY, NULL);
	return !c->job->finished && !was_heavy && job_is_heavy(c->job) &&
	       heavy_jobs() > heavy_most();
}

static uint64_t pixels(const struct image *image)
{
	return (uint64_t)image->width * image->height;
}

/* True if this may be said of an image: what the job costs others is reckoned from it. */
static bool image_fits(const struct job *job, const struct message_image *m)
{
	return m->input_format < FORMATS && image_valid(&m->whole) && image_valid(&m->image) &&
	       image_valid(&m->answer) && pixels(&m->whole) <= job->options.pixels_max &&
	       pixels(&m->image) <= pixels(&m->whole) && pixels(&m->answer) <= pixels(&m->whole) &&
	       m->tiles && m->tiles <= pixels(&m->image);
}

static bool take_image(struct codec *c, const struct message_image *m)
{
	struct job *job = c->job;

	if (!job || m->job != job->options.job || job->image_known || !image_fits(job, m))
		return false;
	if (!job->finished && reckon(c, m)) {
		codec_give_way(c);
		return true;
	}
	job->whole = m->whole;
	job->image = m->image;
	job->input_format = m->input_format;
	job->image_known = true;
	c->plan = plan_use(job->chain, &job->image);
	job->tiles = m->tiles;
	if (!job->finished)
		open_answer(job, &m->answer);
	return true;
}

/* Hands a tile to the scheduler. */
static bool codec_run_tile(struct codec *c, const struct tile *tile, uint64_t prefer)
{
	struct job *job = c->job;
	struct task *task = calloc(1, sizeof *task);

	if (!task)
		return false;
	task->tile = *tile;
	task->job = job;
	task->plan = c->plan;
	task->prefer = prefer;
	task->units = chain_work(job->chain->chain, tile->width, tile->height) * job->image.bands;
	task->item.cost = task->units;
	job_hold(job);
	job->task_done = codec_task_done;
	c->tasks++;
	owner->task_ready(task);
	return true;
}

static bool take_tile(struct codec *c, const struct tile *tile)
{
	struct job *job = c->job;

	if (!job || tile->job != job->options.job || !job->image_known ||
	    tile->arena != c->worker.number || tile->index != c->next_tile ||
	    tile->index >= job->tiles || c->tasks >= SLOTS_MAX ||
	    !tile_valid(tile, &job->image, job->chain->chain, c->arena.in_size, c->arena.out_size))
		return false;
	c->next_tile++;
	return codec_run_tile(c, tile, 0);
}

/* No worker has more threads at work, so its processor time is no longer than that of so many. */
static bool times_fit(const struct job *job, const struct message_job_done *m)
{
	enum { THREADS_MAX = 64 };
	uint64_t most = (loop_now() - job->times.started + 1000000000) * THREADS_MAX;

	return m->decode_ns <= most && m->encode_ns <= most && m->verify_ns <= most &&
	       m->reference_ns <= most;
}

/* True if this may be said of the job now. That the answer is as large as it says is for
 * spool_settle() to see. */
static bool done_fits(const struct job *job, const struct message_job_done *m)
{
	return job && m->job == job->options.job && m->error < ERR_COUNT && m->format < FORMATS &&
	       m->input_format < FORMATS && m->lost < 1u << LOSSES && times_fit(job, m) &&
	       (m->error || (m->format != FORMAT_NONE && image_valid(&m->image) &&
	                     (job->answer.fd >= 0 || job->finished)));
}

/* Ends a job that its worker has done, if its answer is there. */
static bool codec_settle_job(struct codec *c)
{
	struct job *job = c->job;

	if (!job->finished && spool_settle(&job->answer, job->answer_size))
		return false;
	codec_end_job(c, ERR_OK, NULL);
	return true;
}

static bool take_done(struct codec *c, const struct message_job_done *m)
{
	struct job *job = c->job;
	struct problem problem = m->problem;

	if (!done_fits(job, m))
		return false;
	job->format = m->format;
	job->result = m->image;
	job->lost = m->lost;
	job->answer_size = m->answer_size;
	job->times.decode = m->decode_ns;
	job->times.encode = m->encode_ns;
	job->times.verify = m->verify_ns;
	job->times.reference = m->reference_ns;
	if (!m->error && (job->finished || job->answer.in_memory))
		return codec_settle_job(c);
	if (!m->error) {
		/* A file cannot be sealed: it is an answer when nobody can write to it. */
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

static bool take_verified(struct codec *c, const struct message_verified *found)
{
	struct finding finding;

	if (!c->job || found->job != c->job->options.job ||
	    !verified_take(&c->verified, c->job, found, &finding))
		return false;
	if (finding.doubtful)
		owner->doubted(finding.device, c->plan, finding.kernels);
	if (finding.differs)
		owner->distrusted(finding.device, c->plan, finding.kernels);
	return !finding.again || c->job->finished ||
	       codec_run_tile(c, finding.again, finding.prefer);
}

/* The last words of a worker on a job that has given way. */
static bool take_dropped(struct codec *c, const struct message *message)
{
	bool tile = message->type == MSG_TILE && message->tile.tile.job == c->dropped;
	bool done = message->type == MSG_JOB_DONE && message->job_done.job == c->dropped;

	if (done) {
		c->dropped = 0;
		codec_check_idle(c);
	}
	return tile || done;
}

static void codec_message(struct worker *worker, const struct message *message)
{
	struct codec *c = &codecs[worker->number];
	bool taken = false;

	if (c->dropped)
		taken = take_dropped(c, message);
	else if (message->type == MSG_IMAGE)
		taken = take_image(c, &message->image);
	else if (message->type == MSG_TILE)
		taken = take_tile(c, &message->tile.tile);
	else if (message->type == MSG_VERIFIED)
		taken = take_verified(c, &message->verified);
	else if (message->type == MSG_JOB_DONE)
		taken = take_done(c, &message->job_done);
	if (!taken) {
		log_warning("codec-%u sent a %s that does not fit its job", worker->number,
		            message_name(message->type));
		worker_kill(worker, "protocol");
	}
}

/* True if the job has not yet taken too many workers with it, this one too. */
static bool may_run_again(struct job *job, const char *reason)
{
	job->deaths++;
	job->excused += worker_was_killed(reason);
	return job->deaths - job->excused < DEATHS_MAX && job->deaths < DEATHS_MOST;
}

/* The worker has died with its job. That is the image's fault if it happens twice and nobody else
 * killed it, or if the worker had all the time that a job may take. */
static void codec_lose_job(struct codec *c, const char *reason)
{
	struct job *job = c->job;
	struct problem problem;
	bool late = !strcmp(reason, "timeout");

	if (job->finished) {
		codec_end_job(c, job->error, NULL);
	} else if (late) {
		codec_end_job(c,
		              problem_set(&problem, ERR_TIMEOUT, "the job was ended after %llu s",
		                          (unsigned long long)config->job_timeout),
		              &problem);
	} else if (may_run_again(job, reason)) {
		log_notice("job %llu: codec-%u has ended (%s): it runs once more",
		           (unsigned long long)job->id, c->worker.number, reason);
		codec_return_job(c);
	} else {
		codec_end_job(
		    c,
		    problem_set(
		        &problem, ERR_DECODER_DIED,
		        "the process that decoded this image ended (%s), and so did the one "
		        "before; the image may be damaged or made to do harm",
		        reason),
		    &problem);
	}
}

static void codec_down(struct worker *worker, const char *reason)
{
	struct codec *c = &codecs[worker->number];
	bool settled = c->job && c->ending && reason != WORKER_LOST && codec_settle_job(c);

	if (reason == WORKER_LOST)
		worker_stop(worker); /* until its arena has been replaced */
	c->dropped = 0;
	c->ending = false;
	if (c->job && !settled)
		codec_lose_job(c, reason);
	else
		codec_check_idle(c);
}

void codecs_retire(unsigned arena)
{
	struct codec *c = &codecs[arena];

	if (c->worker.stopped)
		return;
	log_warning("the arena of codec-%u may yet be written to: it gets another", arena);
	worker_stop(&c->worker);
	if (c->job && !c->job->finished)
		codec_return_job(c);
}

/* When it waits for tiles it is others' turn. */
static bool codec_busy(const struct worker *worker)
{
	const struct codec *c = &codecs[worker->number];

	return c->dropped || (c->job && !c->tasks);
}

static const struct worker_owner codec_worker = {codec_prepare, codec_up, codec_message, codec_down,
                                                 codec_busy};

/* True if it had time enough to let go of a job that it is to do no more. */
static bool holds_on(const struct codec *c, uint64_t now)
{
	uint64_t since = now - CANCEL_MS * UINT64_C(1000000);

	return (c->dropped && c->dropped_at < since) ||
	       (c->job && c->job->finished && c->job->times.finished < since);
}

static void check_jobs(void *context)
{
	uint64_t limit = config->job_timeout * 1000000000u, now = loop_now();

	(void)context;
	for (unsigned i = 0; i < codec_count; i++) {
		struct codec *c = &codecs[i];

		if (holds_on(c, now))
			worker_kill(&c->worker, "cancelled");
		else if (c->job && now - c->job->times.started > limit)
			worker_kill(&c->worker, "timeout");
		else if (c->worker.stopped) /* an arena could not be opened */
			codec_check_idle(c);
	}
}

/* One more codec worker, at the end of the array. */
static enum error codec_add(void)
{
	struct codec *c = &codecs[codec_count];
	enum error e = arena_open(&c->arena);

	if (e)
		return e;
	c->worker.kind = "codec";
	c->worker.number = codec_count;
	c->worker.owner = &codec_worker;
	codec_count++;
	owner->arena_opened(c->worker.number);
	return worker_start(&c->worker);
}

static const struct job_owner job_owner = {codecs_wake, job_late};

enum error codecs_init(const struct config *c, const struct codec_owner *o)
{
	enum error e;

	config = c;
	owner = o;
	jobs_init(&job_owner);
	codecs = calloc(CODECS_MAX, sizeof *codecs);
	if (!codecs)
		return ERR_MEMORY;
	e = loop_timer_init(&check, check_jobs, NULL);
	if (e)
		return e;
	loop_timer_repeat(&check, CHECK_MS);
	while (!e && codec_count < config->codecs)
		e = codec_add();
	return e;
}

void codecs_reload(void)
{
	for (unsigned i = 0; i < codec_count; i++)
		if (codec_is_surplus(&codecs[i]) || codecs[i].worker.stopped)
			codec_check_idle(&codecs[i]);
	while (codec_count < config->codecs)
		if (codec_add())
			break;
	codecs_wake();
}

/* Jobs that are still open end here; nobody listens to them any more. */
void codecs_fini(void)
{
	struct job *waiting;

	while ((waiting = job_next_waiting(false)))
		job_finish(waiting, ERR_DRAINING, NULL);
	for (unsigned i = 0; i < codec_count; i++) {
		worker_fini(&codecs[i].worker);
		arena_close(&codecs[i].arena);
		if (!codecs[i].job)
			continue;
		owner->job_ended(codecs[i].job);
		job_finish(codecs[i].job, ERR_DRAINING, NULL);
		job_release(codecs[i].job);
	}
	free(codecs);
	codecs = NULL;
	codec_count = 0;
	loop_timer_fini(&check);
}
