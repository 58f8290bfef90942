/* Jobs: their life from submission to the end, and the queue of those that wait for a codec worker,
 * which is fair between clients. */
#include "front/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "front/loop.h"
#include "front/metrics.h"

/* Classes of the queue. Batch jobs get a tenth while others wait. */
enum { LIGHT, HEAVY, BATCH, CLASSES };

static const double weights[CLASSES] = {[LIGHT] = 9, [HEAVY] = 9, [BATCH] = 2};

/* A body from here on makes a job heavy; and what a job costs beside the bytes of its body. */
enum { HEAVY_BODY = 4 << 20, JOB_COST = 64 << 10 };

static struct fair queue;
static bool queue_made;
static unsigned open_jobs;
static uint64_t last_id;
static void (*on_waiting)(void);

void jobs_on_waiting(void (*callback)(void))
{
	on_waiting = callback;
}

unsigned jobs_open(void)
{
	return open_jobs;
}

unsigned jobs_waiting(void)
{
	return queue.count;
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

bool job_is_heavy(const struct job *job)
{
	return job->terms.priority == PRIORITY_BATCH || job->options.body_size >= HEAVY_BODY;
}

struct job *job_new(struct chain *chain, struct spool *body)
{
	struct job *job = calloc(1, sizeof *job);

	if (!job || sealed_create("chain", chain, sizeof *chain, &job->chain_fd)) {
		free(job);
		free(chain);
		return NULL;
	}
	job->id = ++last_id;
	job->references = 1;
	job->chain = chain;
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
	close(job->chain_fd);
	free(job->chain);
	free(job);
}

static unsigned class_of(const struct job *job)
{
	return job->terms.priority == PRIORITY_BATCH ? BATCH : job_is_heavy(job) ? HEAVY : LIGHT;
}

enum error job_submit(struct job *job, void (*done)(struct job *job, void *context), void *context)
{
	if (!queue_made)
		fair_init(&queue, weights, CLASSES);
	queue_made = true;
	if (fair_open(&queue, &job->waiting, class_of(job), job->terms.client))
		return ERR_MEMORY;
	job_hold(job);
	job->done = done;
	job->context = context;
	job->times.accepted = loop_now();
	job->item.cost = JOB_COST + (double)job->options.body_size;
	fair_push(&queue, &job->waiting, &job->item);
	open_jobs++;
	publish_counts();
	on_waiting();
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
	struct fair_item *item = fair_pop(&queue, light_only ? 1 << LIGHT : (1 << CLASSES) - 1);

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
	open_jobs--;
	publish_counts();
	spool_close(&job->body);
	if (job->done)
		job->done(job, job->context);
	job_release(job);
}
