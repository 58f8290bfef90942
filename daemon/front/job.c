/* Jobs: their life from submission to the end, and the queue of those that wait for a codec worker.
 */
#include "front/job.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/arena.h"
#include "front/loop.h"
#include "front/metrics.h"

static struct job *queue_head, **queue_tail = &queue_head;
static unsigned open_jobs, waiting_jobs;
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
	return waiting_jobs;
}

static void publish_counts(void)
{
	metric_set(METRIC_JOBS, "waiting", NULL, waiting_jobs);
	metric_set(METRIC_JOBS, "running", NULL, open_jobs - waiting_jobs);
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

void job_submit(struct job *job, void (*done)(struct job *job, void *context), void *context)
{
	job_hold(job);
	job->done = done;
	job->context = context;
	job->times.accepted = loop_now();
	*queue_tail = job;
	queue_tail = &job->next;
	open_jobs++;
	waiting_jobs++;
	publish_counts();
	on_waiting();
}

void job_requeue(struct job *job)
{
	job->next = queue_head;
	if (!queue_head)
		queue_tail = &job->next;
	queue_head = job;
	waiting_jobs++;
	publish_counts();
}

void job_forget(struct job *job)
{
	job->done = NULL;
}

bool job_leave_queue(struct job *job)
{
	struct job **at = &queue_head;

	while (*at && *at != job)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = job->next;
	if (!*at)
		queue_tail = at;
	job->next = NULL;
	waiting_jobs--;
	publish_counts();
	return true;
}

struct job *job_next_waiting(void)
{
	struct job *job = queue_head;

	if (job)
		job_leave_queue(job);
	return job;
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
	open_jobs--;
	publish_counts();
	spool_close(&job->body);
	if (job->done)
		job->done(job, job->context);
	job_release(job);
}
