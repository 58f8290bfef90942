/* The store of asynchronous jobs: one list, in which a job moves to the end when it ends, so that
 * the first ended one is the oldest. A waiter is only woken, and then looks for news itself, so
 * nothing is lost or queued for a slow client. */
#include "front/jobs/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/config/config.h"

enum { TICK_MS = 250 };

static void (*on_end)(const char *id, const struct job *job);
static TAILQ_HEAD(stored_list, stored) all = TAILQ_HEAD_INITIALIZER(all);
static struct loop_timer tick;
static unsigned count;

void waiter_leave(struct waiter *w)
{
	if (w->waits)
		LIST_REMOVE(w, place);
	w->waits = false;
}

void waiter_wake(struct waiter *w)
{
	waiter_leave(w);
	w->wake(w->context);
}

void store_wait(struct stored *s, struct waiter *w, uint64_t due)
{
	waiter_leave(w);
	LIST_INSERT_HEAD(&s->waiters, w, place);
	w->waits = true;
	w->due = due;
}

/* Wakes the waiters that do not wait beyond this time. */
static void wake_due(struct stored *s, uint64_t time)
{
	for (struct waiter *w = LIST_FIRST(&s->waiters), *next; w; w = next) {
		next = LIST_NEXT(w, place);
		if (time >= w->due)
			waiter_wake(w);
	}
}

static void tell_all(struct stored *s)
{
	s->told_state = stored_state(s);
	s->told_tiles = stored_tiles_done(s);
	wake_due(s, UINT64_MAX);
}

unsigned store_count(void)
{
	return count;
}

static void forget(struct stored *s)
{
	TAILQ_REMOVE(&all, s, place);
	count--;
	for (unsigned i = 0; i < STORED_SHARES; i++)
		share_give_all(&s->share[i]);
	wake_due(s, UINT64_MAX);
	s->job->done = NULL;
	job_release(s->job);
	free(s);
	if (!count)
		loop_timer_repeat(&tick, 0);
}

/* Ends the job with an error in place of its result, which is too large. */
static void refuse_result(struct job *job, const char *why, uint64_t most)
{
	job->error = problem_set(&job->problem, ERR_RESULT_TOO_LARGE,
	                         "the result has %" PRIu64 " bytes; %s%" PRIu64 " are allowed",
	                         job->answer.size, why, most);
	spool_close(&job->answer);
}

/* Returns a result's share of one of the STORED_SHARES kinds. */
static struct share *share_in(struct stored *s, enum share_kind kind)
{
	return &s->share[kind - SHARE_RESULTS];
}

/* Removes the oldest results of the client that holds most, until no more than `most` is held; but
 * not the newest. */
static void reduce(enum share_kind kind, uint64_t most, const struct stored *newest)
{
	while (share_total(kind) > most) {
		const uint64_t greatest = share_greatest(kind);
		struct stored *s;

		TAILQ_FOREACH(s, &all, place)
		{
			if (s != newest && share_in(s, kind)->amount &&
			    share_of(kind, s->job->terms.client) == greatest)
				break;
		}
		if (!s)
			return;
		forget(s);
	}
}

static bool share_result(struct stored *s, enum share_kind kind, uint64_t amount)
{
	return !share_force(share_in(s, kind), kind, s->job->terms.client, amount);
}

static void job_ended(struct job *job, void *context)
{
	struct stored *s = context;
	uint64_t others;

	TAILQ_REMOVE(&all, s, place);
	TAILQ_INSERT_TAIL(&all, s, place);
	if (!job->error && job->answer.size > config->result_size)
		refuse_result(job, "at most ", config->result_size);
	else if (job->error)
		spool_close(&job->answer);
	if (!share_result(s, SHARE_RESULTS, 1) ||
	    !share_result(s, SHARE_RESULT_SIZE, job->answer.size) ||
	    !share_result(s, SHARE_RESULT_MEMORY, job->answer.reserved)) {
		on_end(s->id, job); /* there is no memory to record its client */
		forget(s);
		return;
	}
	/* Results in memory displace the bodies of new requests, so they get half of the memory. */
	reduce(SHARE_RESULTS, config->result_count, s);
	reduce(SHARE_RESULT_MEMORY, config->max_memory / 2, s);
	reduce(SHARE_RESULT_SIZE, config->result_size, s);
	if (share_total(SHARE_RESULT_SIZE) > config->result_size) {
		others = share_total(SHARE_RESULT_SIZE) - share_in(s, SHARE_RESULT_SIZE)->amount;
		refuse_result(job, "beside other clients' at most ", config->result_size - others);
		share_give_all(share_in(s, SHARE_RESULT_SIZE));
		share_give_all(share_in(s, SHARE_RESULT_MEMORY));
	}
	on_end(s->id, job);
	tell_all(s);
}

static void look_at_all(void *context)
{
	uint64_t now = loop_now();

	(void)context;
	for (struct stored *s = TAILQ_FIRST(&all), *next; s; s = next) {
		next = TAILQ_NEXT(s, place);
		if (s->job->finished && !stored_kept_for(s))
			forget(s);
		else if (stored_state(s) != s->told_state || stored_tiles_done(s) != s->told_tiles)
			tell_all(s);
		else
			wake_due(s, now);
	}
}

struct stored *store_add(const char *id, struct job *job, uint64_t arrived)
{
	struct stored *s = calloc(1, sizeof *s + strlen(id) + 1);

	if (!s) {
		job_release(job);
		return NULL;
	}
	strcpy(s->id, id);
	s->job = job;
	s->arrived = arrived;
	TAILQ_INSERT_TAIL(&all, s, place);
	if (!count++)
		loop_timer_repeat(&tick, TICK_MS);
	if (job_submit(job, job_ended, s)) {
		forget(s);
		s = NULL;
	}
	return s;
}

struct stored *store_find(const char *id)
{
	struct stored *s;

	TAILQ_FOREACH(s, &all, place)
	{
		if (!strcmp(s->id, id))
			break;
	}
	return s;
}

enum stored_state stored_state(const struct stored *s)
{
	if (s->job->finished && s->job->error)
		return s->job->error == ERR_CANCELLED ? STORED_CANCELLED : STORED_FAILED;
	if (s->job->finished)
		return STORED_DONE;
	return s->job->codec ? STORED_RUNNING : STORED_WAITING;
}

uint32_t stored_tiles_done(const struct stored *s)
{
	/* The estimate ignores filters that the reference computes. */
	return stored_state(s) == STORED_DONE ? job_tiles(s->job) : job_tiles_done(s->job);
}

bool stored_time_left(const struct stored *s, uint64_t *ns)
{
	const struct job *job = s->job;

	if (stored_state(s) != STORED_RUNNING || !job->tiles_done)
		return false;
	*ns = (loop_now() - job->times.began) / job->tiles_done *
	      (job_tiles(job) - job_tiles_done(job));
	return true;
}

uint64_t stored_kept_for(const struct stored *s)
{
	uint64_t age = loop_now() - s->job->times.finished,
	         most = config->result_time * 1000000000u;

	return age < most ? most - age : 0;
}

void store_delete(struct stored *s)
{
	struct problem problem;
	enum error e = problem_set(&problem, ERR_CANCELLED, "a DELETE request cancelled it");

	if (!s->job->finished) {
		job_cancel(s->job, e, &problem);
		return;
	}
	forget(s);
}

enum error store_init(void (*ended)(const char *id, const struct job *job))
{
	on_end = ended;
	return loop_timer_init(&tick, look_at_all, NULL);
}

void store_fini(void)
{
	while (!TAILQ_EMPTY(&all))
		forget(TAILQ_FIRST(&all));
	loop_timer_fini(&tick);
}
