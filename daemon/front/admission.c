/* The drain rate is work done over busy time, both fading with a time constant. Busy is a class as
 * long as it has a job. */
#include "front/admission.h"

#include <math.h>

#include "front/loop.h"

/* A body from here on makes a job heavy; what a job costs beside the bytes of its body. */
enum { HEAVY_BODY = 4 << 20, JOB_COST = 64 << 10 };

/* Seconds after which what was measured counts for a third; and how much of them is enough. */
static const double fade = 10, enough = 0.05;

struct demand {
	unsigned jobs;
	double backlog;    /* cost of these */
	double done, busy; /* cost, and seconds; fading */
	uint64_t updated;  /* loop_now() */
};

static const struct config *config;
static struct demand demands[WORK_CLASSES];
static unsigned expected; /* requests that are arriving */

void admission_init(const struct config *c)
{
	config = c;
	for (enum work_class i = 0; i < WORK_CLASSES; i++)
		demands[i] = (struct demand){0};
	expected = 0;
}

enum work_class work_class(bool batch, uint64_t body_size)
{
	return batch ? WORK_BATCH : body_size >= HEAVY_BODY ? WORK_HEAVY : WORK_LIGHT;
}

double work_cost(uint64_t body_size)
{
	return JOB_COST + (double)body_size;
}

/* Counts the time since the last change. */
static void update(struct demand *d)
{
	uint64_t now = loop_now();
	double seconds = (double)(now - d->updated) * 1e-9, kept = exp(-seconds / fade);

	d->updated = now;
	if (!d->jobs)
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

void admission_ended(enum work_class class, double cost)
{
	struct demand *d = &demands[class];

	update(d);
	d->jobs--;
	d->backlog = d->jobs ? d->backlog - cost : 0;
	d->done += cost;
}

double admission_predict(enum work_class class, double cost)
{
	const struct demand *d = &demands[class];

	/* Who is alone is always let in: else an old measurement might keep all out for good. */
	if (!d->jobs || d->busy < enough || d->done <= 0)
		return 0;
	return (d->backlog + cost) * d->busy / d->done;
}

void admission_expect(void)
{
	expected++;
}

void admission_unexpect(void)
{
	expected--;
}

static unsigned jobs(void)
{
	unsigned sum = expected;

	for (enum work_class i = 0; i < WORK_CLASSES; i++)
		sum += demands[i].jobs;
	return sum;
}

enum error admission_check(enum work_class class, uint64_t body_size, struct problem *problem)
{
	double wait = admission_predict(class, work_cost(body_size));

	if (jobs() >= config->max_jobs)
		return problem_set(problem, ERR_QUEUE_FULL,
		                   "%u requests are being worked on, the most that are accepted",
		                   jobs());
	if (wait > (double)config->max_wait)
		return problem_set(
		    problem, ERR_QUEUE_FULL,
		    "this request would take about %.0f s; at most %llu are accepted", wait,
		    (unsigned long long)config->max_wait);
	return ERR_OK;
}

unsigned admission_retry_after(void)
{
	enum { MOST = 600 };
	double seconds = 1;

	/* Until the next of the jobs is done, and the wait of the last is short enough. */
	for (enum work_class i = 0; i < WORK_CLASSES; i++) {
		double wait = admission_predict(i, 0);

		if (demands[i].jobs)
			seconds = fmax(
			    seconds, fmax(wait / demands[i].jobs, wait - (double)config->max_wait));
	}
	return (unsigned)ceil(fmin(seconds, MOST));
}
