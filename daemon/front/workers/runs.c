/* The hard part is the end of a job. Devices may still hold its tiles and write to the arena, so
 * the arena gets its next job only when every task is back, even if the codec process that sent
 * them has long ended.
 *
 * A job may turn out to be heavy once its image's header has been read, while other heavy jobs have
 * all the workers that they may have. It then gives way: its worker has decoded nothing yet and
 * drops it, and the job waits for its turn among the heavy ones.
 *
 * A worker above the configured number takes no job and is ended when it has none; its arena is
 * closed when its process has been reaped. */
#include "front/workers/runs.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/loop.h"
#include "front/config/config.h"
#include "front/workers/device_load.h"
#include "front/workers/jpeg_router.h"

static const struct codec_owner *owner;
static struct codec codecs[CODECS_MAX];
static unsigned codec_count; /* ever started */

struct codec *codec_get(unsigned i)
{
	return i < codec_count ? &codecs[i] : NULL;
}

unsigned runs_workers(void)
{
	return config->codecs < codec_count ? (unsigned)config->codecs : codec_count;
}

static bool codec_is_surplus(const struct codec *c)
{
	return c->worker.number >= config->codecs;
}

/* follows: the run of the job whose rows the worker has kept; 0: none. */
static void codec_start_job(struct codec *c, struct job *job, uint64_t follows)
{
	struct message message = {.type = MSG_JOB, .job = job->options};
	int fds[] = {job->body.fd, job->chain->fd};

	message.job.arena = c->worker.number;
	message.job.samples_max = load_samples_max(job->chain->chain);
	message.job.gathering = job->gathering;
	message.job.gather_channels = job->gather_channels;
	message.job.follows = follows;
	message.job.verify_share = config->verify_share;
	message.job.verify_taps = config->verify_taps;
	job->jpeg_form = TILE_JPEG;
	job_set_jpeg(job, jpeg_router_ask(job, &message.job.jpeg_pixels));
	c->job = job;
	c->run = (struct codec_run){.worked = c->worker.stall.worked_ns};
	job->codec = c;
	job_hold(job);
	job->times.began = loop_now();
	job->times.routed = 0;
	job->times.queue += job->times.began - job->times.queued;
	job->times.queued = 0;
	if (!job->times.started)
		job->times.started = job->times.began;
	worker_send(&c->worker, &message, fds); /* on failure codec_down() follows */
}

static bool codec_is_idle(const struct codec *c)
{
	return c->worker.state == WORKER_UP && !c->job && !c->tasks && !c->dropped;
}

/* Sets of classes whose number of codec workers is limited. All but light jobs leave one worker to
 * these, or up to three if there are enough; verified ones leave half. */
enum {
	ALL = (1 << WORK_CLASSES) - 1,
	NOT_LIGHT = ALL & ~(1 << WORK_LIGHT),
	VERIFIED = 1 << WORK_VERIFIED
};

/* Returns true if a set has all its codec workers, or (beyond) more than these. */
static bool is_full(unsigned classes, bool beyond)
{
	enum { FEW = 2, LEFT = 3 };
	const unsigned workers = runs_workers();
	unsigned most = workers > FEW + LEFT ? workers - LEFT : workers > FEW ? FEW : 1, jobs = 0;

	if (classes == VERIFIED)
		most = workers > 1 ? workers / 2 : 1;
	for (unsigned i = 0; i < workers; i++)
		jobs += codecs[i].job && classes >> codecs[i].job->class & 1;
	return jobs >= most + beyond;
}

bool runs_too_heavy(void)
{
	return is_full(NOT_LIGHT, true);
}

void runs_wake(void)
{
	for (unsigned i = 0; i < runs_workers() && jobs_count().waiting; i++) {
		unsigned classes = ALL;
		struct job *job;

		if (!codec_is_idle(&codecs[i]))
			continue;
		if (is_full(VERIFIED, false))
			classes &= ~(unsigned)VERIFIED;
		if (is_full(NOT_LIGHT, false))
			classes &= ~(unsigned)NOT_LIGHT;
		job = job_next_waiting(classes);
		if (!job)
			return;
		codec_start_job(&codecs[i], job, 0);
	}
}

static enum error open_arena(unsigned number)
{
	return arenas_open(number, config->arena_size / SLOT_ALIGNMENT * SLOT_ALIGNMENT);
}

static void drop_plan(struct codec *c)
{
	if (c->plan)
		plan_release(c->plan);
	c->plan = NULL;
}

void codec_check_idle(struct codec *c)
{
	if (c->job || c->tasks || c->dropped)
		return;
	drop_plan(c);
	if (codec_is_surplus(c) || c->worker.stopped) {
		/* The first call ends its process; the next, after the process has been reaped,
		 * closes its arena. */
		worker_stop(&c->worker);
		if (c->worker.state == WORKER_STOPPED)
			arenas_close(c->worker.number);
	}
	if (!codec_is_surplus(c) && c->worker.stopped && !arenas_get(c->worker.number) &&
	    !open_arena(c->worker.number))
		worker_resume(&c->worker);
	runs_wake();
}

/* Takes the job from its worker; its reference is now the caller's. */
static struct job *codec_leave_job(struct codec *c)
{
	struct job *job = c->job;

	c->job = NULL;
	job->codec = NULL;
	owner->job_ended(job);
	return job;
}

void codec_return_job(struct codec *c)
{
	struct job *job = codec_leave_job(c);

	job_restart(job);
	job_release(job);
	codec_check_idle(c);
}

static void job_cancelled(struct job *job)
{
	struct message message = {.type = MSG_CANCEL, .cancel = {job->options.job}};

	worker_send(&job->codec->worker, &message, NULL);
}

void codec_give_way(struct codec *c)
{
	c->dropped = c->job->options.job;
	c->dropped_at = loop_now();
	job_cancelled(c->job);
	codec_return_job(c);
}

void codec_end_job(struct codec *c, enum error error, const struct problem *problem)
{
	struct job *job = codec_leave_job(c);

	job_finish(job, error, problem);
	job_release(job);
	codec_check_idle(c);
}

/* Continues the job with the numbers that its run has made; returns false if that is impossible.
 * With rows that the worker has kept it continues there at once, even if it is heavy, because
 * returning would cost more. */
static bool use_gathered(struct codec *c)
{
	const uint64_t run = c->kept ? c->job->options.job : 0;
	struct job *job = c->job;
	const uint64_t count = job_gathers(job), size = count * sizeof(double);
	const enum gather kind = (enum gather)job->gathering.kind;
	const bool fits = count && count <= GATHERED_MAX && job->answer_size == size;
	double *numbers = fits ? malloc(size) : NULL;

	if (!numbers || !file_read(job->answer.fd, numbers, size, 0) ||
	    !gather_valid(kind, numbers, count)) {
		free(numbers);
		return false;
	}
	codec_leave_job(c);
	if (job_go_on(job, numbers)) {
		job_finish(job, ERR_MEMORY, NULL);
	} else if (run && codec_is_idle(c) && !codec_is_surplus(c) && job_leave_queue(job)) {
		drop_plan(c);
		codec_start_job(c, job, run);
	}
	free(numbers);
	job_release(job);
	codec_check_idle(c);
	return true;
}

bool codec_settle_job(struct codec *c)
{
	struct job *job = c->job;

	if (!job->finished && spool_settle(&job->answer, job->answer_size))
		return false;
	c->worker.served = loop_now();
	if (!job->finished && job->gathering.kind)
		return use_gathered(c);
	codec_end_job(c, ERR_OK, NULL);
	return true;
}

enum error codecs_add(const struct worker_owner *o)
{
	enum error e = ERR_OK;

	while (!e && codec_count < config->codecs) {
		const unsigned number = codec_count;

		e = open_arena(number);
		codec_count += !e;
		if (!e)
			e = worker_start(&codecs[number].worker, o, number);
	}
	return e;
}

static const struct job_owner job_owner = {.waiting = runs_wake, .cancelled = job_cancelled};

void runs_init(const struct codec_owner *o)
{
	owner = o;
	jobs_init(&job_owner);
}

void runs_fini(void)
{
	for (unsigned i = 0; i < codec_count; i++) {
		arenas_close(i);
		if (!codecs[i].job)
			continue;
		owner->job_ended(codecs[i].job);
		job_finish(codecs[i].job, ERR_DRAINING, NULL);
		job_release(codecs[i].job);
	}
}
