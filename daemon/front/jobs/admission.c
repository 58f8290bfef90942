/* The drain rate is finished work over busy time, both decaying with a time constant. A class is
 * busy while it has a job that does not wait for a program, and a device is up. */
#include "front/jobs/admission.h"

#include <inttypes.h>
#include <math.h>

#include "base/loop.h"
#include "front/config/config.h"
#include "front/jobs/shares.h"

/* The body size from which a job is heavy; a job's cost besides its body; bytes of pixels per byte
 * of a photograph's file, and a device's time that counts as much. */
enum { HEAVY_BODY = 4 << 20, JOB_COST = 64 << 10, PIXEL_BYTES = 32, WORK_NS = 100 };

/* Seconds in which a measurement decays to a third, and seconds of measurement that suffice. */
static const double fade = 10, enough = 0.05;

struct demand {
	unsigned jobs, held;
	double backlog;    /* their cost */
	double done, busy; /* cost, and seconds; both decay */
	uint64_t updated;  /* loop_now() */
};

static struct demand demands[WORK_CLASSES];
static bool stalled; /* no device is up */

void admission_init(void)
{
	stalled = false;
	for (enum work_class i = 0; i < WORK_CLASSES; i++)
		demands[i] = (struct demand){0};
}

double work_cost(uint64_t body_size)
{
	return JOB_COST + (double)body_size;
}

double work_cost_known(uint64_t body_size, uint64_t pixel_bytes, double work_ns)
{
	double pixels = (double)pixel_bytes / PIXEL_BYTES;

	return JOB_COST + fmax((double)body_size, pixels) + work_ns / WORK_NS;
}

enum work_class work_class(bool batch, double cost)
{
	return batch ? WORK_BATCH : cost >= JOB_COST + HEAVY_BODY ? WORK_HEAVY : WORK_LIGHT;
}

/* Accounts for the time since the last change. */
static void update(struct demand *d)
{
	uint64_t now = loop_now();
	double seconds = (double)(now - d->updated) * 1e-9, kept = exp(-seconds / fade);

	d->updated = now;
	if (d->jobs <= d->held || stalled)
		return;
	d->done *= kept;
	d->busy = d->busy * kept + seconds;
}

void admission_began(enum work_class class, double cost)
{
	struct demand *d = &demands[class];

	update(d);
	d->jobs++;
	d->backlog += cost;
}

static void leave(struct demand *d, double cost)
{
	update(d);
	d->jobs--;
	d->backlog = d->jobs ? d->backlog - cost : 0;
}

void admission_changed(enum work_class from, double old, enum work_class to, double cost)
{
	admission_began(to, cost);
	leave(&demands[from], old);
}

void admission_ended(enum work_class class, double cost)
{
	leave(&demands[class], cost);
	demands[class].done += cost;
}

void admission_held(enum work_class class, bool held)
{
	struct demand *d = &demands[class];

	update(d);
	d->held += held ? 1 : -1u;
}

void admission_stalled(bool now_stalled)
{
	for (enum work_class i = 0; i < WORK_CLASSES; i++)
		update(&demands[i]);
	stalled = now_stalled;
}

double admission_predict(enum work_class class, double cost)
{
	const struct demand *d = &demands[class];

	/* A client that is alone, or finds only jobs that wait for programs, is always admitted: an
	 * outdated measurement must not refuse everybody for good. */
	if (d->jobs <= d->held || d->busy < enough || d->done <= 0)
		return 0;
	return (d->backlog + cost) * d->busy / d->done;
}

double admission_free(void)
{
	double longest = 0;

	for (enum work_class i = 0; i < WORK_CLASSES; i++)
		longest = fmax(longest, admission_predict(i, 0));
	return fmax(0, 1 - longest / (double)config->max_wait);
}

enum error admission_check(const char *client, enum work_class class, uint64_t body_size,
                           struct problem *problem)
{
	double wait = admission_predict(class, work_cost(body_size));
	enum error e = share_ask(SHARE_JOBS, client, 1, config->max_jobs, problem);

	if (e)
		return e;
	if (wait > (double)config->max_wait)
		return problem_set(problem, ERR_QUEUE_FULL,
		                   "this request would take about %.0f s; at most %" PRIu64
		                   " s are accepted",
		                   wait, config->max_wait);
	return ERR_OK;
}

unsigned admission_retry_after(void)
{
	enum { MOST = 600 };
	double seconds = 1;

	/* Returns the time until a job is done and the last one's wait is short enough. */
	for (enum work_class i = 0; i < WORK_CLASSES; i++) {
		double wait = admission_predict(i, 0);

		if (demands[i].jobs)
			seconds = fmax(
			    seconds, fmax(wait / demands[i].jobs, wait - (double)config->max_wait));
	}
	return (unsigned)ceil(fmin(seconds, MOST));
}
