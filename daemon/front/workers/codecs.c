/* The life of the codec workers: starting their processes, and handling their end or their hanging.
 *
 * A job whose worker dies runs once more, from its body. Each run has its own number, which all its
 * messages carry. */
#include "front/workers/codecs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "front/workers/codec_reports.h"
#include "front/workers/repertoire.h"
#include "process/sandbox.h"

enum {
	CHECK_MS = 200,
	DEATHS_MAX = 2,     /* workers that may die on a job */
	DEATHS_ALL_MAX = 8, /* including those that somebody else killed */
	CANCEL_MS = 2000    /* for a worker to leave a job that has ended */
};

static const struct config *config;
static struct loop_timer check;

static void codec_prepare(const struct worker *worker, struct start *start)
{
	(void)worker;
	start->memory = config->codec_memory;
	start->formats = repertoire_allowed();
}

static void codec_up(struct worker *worker, const struct message_ready *ready)
{
	repertoire_take(&ready->formats);
	if (arenas_tell(worker->number, worker, false))
		runs_wake();
}

static void codec_message(struct worker *worker, const struct message *message)
{
	if (!codec_reports_take(codec_get(worker->number), message))
		worker_refuse(worker, message_name(message->type));
}

/* Counts this worker's death. Returns true if the job may run again. */
static bool may_run_again(struct job *job, const char *reason)
{
	job->deaths++;
	job->excused += worker_was_killed(reason);
	return job->deaths - job->excused < DEATHS_MAX && job->deaths < DEATHS_ALL_MAX;
}

/* The most processor time that a run may take, in nanoseconds: many times what any image takes that
 * is what it seems (docs/benchmarks.md, measurements). Up to the first tile that is decoding alone;
 * most decoders then have done all their work. Encoders take longer; what the worker itself is to
 * filter or compare is known. No format's cost is predicted, as files may refer to a picture ten
 * thousand times. A timer in the worker could be switched off by one that has been taken over. */
static double time_max(const struct codec *c)
{
	const double decode_ns = 2e9, decode_pixel_ns = 5e3, encode_ns = 3e9, encode_pixel_ns = 2e4,
	             unit_ns = 4;
	const struct job *job = c->job;
	/* A frame may need all before it. PAGES_ALL is a larger number than any page's. */
	const double pages = fmax(1, fmin(job->options.page, job->pages));
	const double pixels =
	    job->image_known ? (double)job->whole.width * job->whole.height * pages : 0;
	double max = decode_ns + decode_pixel_ns * pixels;

	if (c->next_tile || job->verify_units > 0)
		max += encode_ns + encode_pixel_ns * pixels;
	max += unit_ns * (job->verify_units + (double)c->next_tile * (double)config->verify_taps);
	return SANITIZER ? 20 * max : max;
}

/* The worker died on its job. The image is blamed if this happens twice and nobody else killed the
 * workers; a worker killed at a limit of time ends the job at once. */
static void codec_lose_job(struct codec *c, const char *reason)
{
	struct job *job = c->job;
	struct problem problem;

	if (job->finished) {
		codec_end_job(c, job->error, NULL);
	} else if (!strcmp(reason, "complex")) {
		codec_end_job(
		    c,
		    problem_set(&problem, ERR_TOO_COMPLEX,
		                "the image takes more processor time than one of its size "
		                "may; the limit is %.1f s",
		                time_max(c) * 1e-9),
		    &problem);
	} else if (!strcmp(reason, "timeout")) {
		codec_end_job(c,
		              problem_set(&problem, ERR_TIMEOUT,
		                          "the job was ended after %" PRIu64 " s",
		                          config->job_timeout),
		              &problem);
	} else if (may_run_again(job, reason)) {
		log_notice("job %" PRIu64 ": %s ended (%s); the job runs once more", job->id,
		           c->worker.name, reason);
		codec_return_job(c);
	} else {
		codec_end_job(
		    c,
		    problem_set(&problem, ERR_DECODER_DIED,
		                "two processes in a row ended while decoding this image (the last: "
		                "%s); it may be damaged or malicious",
		                reason),
		    &problem);
	}
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
    .program = "convolved-codec",
    .prepare = codec_prepare,
    .up = codec_up,
    .message = codec_message,
    .down = codec_down,
    .busy = codec_busy,
};

/* Kills workers that have held on to a job that they should have left for longer than CANCEL_MS, or
 * whose job has taken too much time. */
static void check_jobs(void *context)
{
	const uint64_t limit = config->job_timeout * 1000000000u, now = loop_now();
	const uint64_t cancelled = now - CANCEL_MS * UINT64_C(1000000);

	(void)context;
	for (unsigned i = 0; i < codecs_count(); i++) {
		struct codec *c = codec_get(i);
		const struct job *job = c->job;

		if ((c->dropped && c->dropped_at < cancelled) ||
		    (job && job->finished && job->times.finished < cancelled))
			worker_kill(&c->worker, "cancelled");
		else if (job && !job->finished &&
		         (double)(c->worker.stall.worked_ns - c->worked) > time_max(c))
			worker_kill(&c->worker, "complex");
		else if (job && now - job->times.started > limit)
			worker_kill(&c->worker, "timeout");
		else if (c->worker.stopped) /* its arena could not be opened: try again */
			codec_check_idle(c);
	}
}

/* Adds a codec worker at the end of the array. */
static enum error codec_add(void)
{
	struct codec *c;
	enum error e = codec_open(&c);

	if (e)
		return e;
	c->worker.kind = "codec";
	c->worker.owner = &codec_worker;
	return worker_start(&c->worker);
}

enum error codecs_init(const struct config *c, const struct codec_owner *owner)
{
	enum error e = runs_init(c, owner);

	config = c;
	repertoire_init(c);
	codec_reports_init(owner);
	if (!e)
		e = loop_timer_init(&check, check_jobs, NULL);
	if (e)
		return e;
	loop_timer_repeat(&check, CHECK_MS);
	while (!e && codecs_count() < config->codecs)
		e = codec_add();
	return e;
}

void codecs_reload(void)
{
	for (unsigned i = 0; i < codecs_count(); i++)
		if (codec_is_surplus(codec_get(i)) || codec_get(i)->worker.stopped)
			codec_check_idle(codec_get(i));
	while (codecs_count() < config->codecs)
		if (codec_add())
			break;
	runs_wake();
}

/* Also ends jobs that are still open; their clients have gone. */
void codecs_fini(void)
{
	struct job *waiting;

	while ((waiting = job_next_waiting(~0u)))
		job_finish(waiting, ERR_DRAINING, NULL);
	for (unsigned i = 0; i < codecs_count(); i++)
		worker_fini(&codec_get(i)->worker);
	runs_fini();
	loop_timer_fini(&check);
}
