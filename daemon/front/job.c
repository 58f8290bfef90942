/* Jobs: their life from submission to the end, and the queue of those that wait for a codec worker,
 * which is fair between clients. */
#include "front/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "front/admission.h"
#include "front/loop.h"
#include "front/metrics.h"

/* Batch jobs get a tenth while others wait. */
static const double weights[WORK_CLASSES] = {[WORK_LIGHT] = 9, [WORK_HEAVY] = 9, [WORK_BATCH] = 2};

static struct fair queue;
static unsigned open_jobs;
static uint64_t last_id, ended;
static const struct job_owner *owner;

void jobs_init(const struct job_owner *o)
{
	owner = o;
	fair_init(&queue, weights, WORK_CLASSES);
}

unsigned jobs_open(void)
{
	return open_jobs;
}

unsigned jobs_waiting(void)
{
	return queue.count;
}

uint64_t jobs_ended(void)
{
	return ended;
}

static void publish_counts(void)
{
	metric_set(METRIC_JOBS, "waiting", NULL, queue.count);
	metric_set(METRIC_JOBS, "running", NULL, open_jobs - queue.count);
}

enum priority priority_parse(const char *text)
{
	return !strcmp(text, "interactive") ? PRIORITY_INTERACTIVE
	       : !strcmp(text, "batch")     ? PRIORITY_BATCH
	                                    : PRIORITIES;
}

static enum work_class class_of(const struct job *job)
{
	return work_class(job->terms.priority == PRIORITY_BATCH, job->options.body_size);
}

bool job_is_heavy(const struct job *job)
{
	return class_of(job) != WORK_LIGHT;
}

struct job *job_new(struct chain *chain, struct spool *body)
{
	struct shared_chain *shared = chain_share(chain);
	struct job *job = shared ? calloc(1, sizeof *job) : NULL;

	if (!job) {
		if (shared)
			chain_release(shared);
		return NULL;
	}
	job->id = ++last_id;
	job->references = 1;
	job->chain = shared;
	job->options.job = job->id;
	job->options.body_size = body->size;
	job->body = *body;
	*body = (struct spool){.fd = -1};
	job->answer.fd = -1;
	return job;
}

void job_hold(struct job *job)
{
	job->references++;
}

void job_release(struct job *job)
{
	if (--job->references)
		return;
	spool_close(&job->body);
	spool_close(&job->answer);
	chain_release(job->chain);
	free(job);
}

static void deadline_passed(void *context)
{
	owner->late(context);
}

/* Starts the timer of a job that has a deadline. */
static enum error watch_deadline(struct job *job)
{
	uint64_t now = loop_now(), deadline = job->terms.deadline;
	enum error e;

	if (!deadline)
		return ERR_OK;
	e = loop_timer_init(&job->deadline, deadline_passed, job);
	if (!e)
		loop_timer_start(&job->deadline,
		                 1 + (deadline > now ? deadline - now : 0) / 1000000);
	return e;
}

enum error job_submit(struct job *job, void (*done)(struct job *job, void *context), void *context)
{
	if (fair_open(&queue, &job->waiting, class_of(job), job->terms.client, job->terms.share))
		return ERR_MEMORY;
	if (watch_deadline(job)) {
		fair_close(&queue, &job->waiting);
		return ERR_MEMORY;
	}
	job_hold(job);
	job->done = done;
	job->context = context;
	job->times.accepted = loop_now();
	job->item.cost = work_cost(job->options.body_size);
	admission_began(class_of(job), job->item.cost);
	fair_push(&queue, &job->waiting, &job->item);
	open_jobs++;
	publish_counts();
	owner->waiting();
	return ERR_OK;
}

void job_requeue(struct job *job)
{
	fair_return(&queue, &job->waiting, &job->item);
	publish_counts();
}

void job_forget(struct job *job)
{
	job->done = NULL;
}

bool job_leave_queue(struct job *job)
{
	bool was_there = job->waiting.client && fair_take_all(&queue, &job->waiting);

	publish_counts();
	return was_there;
}

struct job *job_next_waiting(bool light_only)
{
	struct fair_item *item =
	    fair_pop(&queue, light_only ? 1 << WORK_LIGHT : (1 << WORK_CLASSES) - 1);

	publish_counts();
	return item ? (struct job *)((char *)item - offsetof(struct job, item)) : NULL;
}

void job_finish(struct job *job, enum error error, const struct problem *problem)
{
	if (job->finished)
		return;
	job->finished = true;
	job->error = error;
	if (problem)
		job->problem = *problem;
	job->times.finished = loop_now();
	fair_close(&queue, &job->waiting);
	if (job->terms.deadline)
		loop_timer_fini(&job->deadline);
	admission_ended(class_of(job), job->item.cost);
	open_jobs--;
	ended++;
	publish_counts();
	spool_close(&job->body);
	if (job->done)
		job->done(job, job->context);
	job_release(job);
}
