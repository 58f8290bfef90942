/* The store of asynchronous jobs: one list, in which a job moves to the end when it has ended, so
 * that the first ended one is the oldest.
 *
 * News are told by level, not by edge: a waiter is only woken, and then looks for itself what there
 * is. So nothing is lost or queued for a client that is slow. */
#include "front/store.h"

#include <stdlib.h>
#include <string.h>

#include "front/codecs.h"
#include "front/loop.h"
#include "front/metrics.h"

enum { TICK_MS = 250 };

static const struct config *config;
static void (*on_end)(const char *id, const struct job *job);
static struct stored *first, **last = &first;
static struct loop_timer tick;
static unsigned count, ended_count;
static uint64_t bytes;  /* of results */
static uint64_t memory; /* the part of them that lies in memory */

void waiter_leave(struct waiter *w)
{
	if (!w->link)
		return;
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	w->link = NULL;
}

void waiter_wake(struct waiter *w)
{
	waiter_leave(w);
	w->wake(w->context);
}

void store_wait(struct stored *s, struct waiter *w, uint64_t due)
{
	waiter_leave(w);
	w->due = due;
	w->next = s->waiters;
	w->link = &s->waiters;
	if (w->next)
		w->next->link = &w->next;
	s->waiters = w;
}

static void tell_all(struct stored *s)
{
	s->told_state = stored_state(s);
	s->told_tiles = stored_tiles_done(s);
	while (s->waiters)
		waiter_wake(s->waiters);
}

static void tell_due(struct stored *s, uint64_t now)
{
	for (struct waiter *w = s->waiters, *next; w; w = next) {
		next = w->next;
		if (now >= w->due)
			waiter_wake(w);
	}
}

static void publish(void)
{
	metric_set(METRIC_STORED_JOBS, "open", NULL, count - ended_count);
	metric_set(METRIC_STORED_JOBS, "ended", NULL, ended_count);
	metric_set(METRIC_STORED_BYTES, NULL, NULL, (double)bytes);
}

static void append(struct stored *s)
{
	s->next = NULL;
	s->link = last;
	*last = s;
	last = &s->next;
	count++;
}

static void detach(struct stored *s)
{
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	else
		last = s->link;
	count--;
}

static void forget(struct stored *s)
{
	detach(s);
	if (s->job->finished) {
		ended_count--;
		bytes -= s->bytes;
		memory -= s->memory;
	}
	while (s->waiters)
		waiter_wake(s->waiters);
	job_forget(s->job);
	job_release(s->job);
	free(s);
	if (!first)
		loop_timer_repeat(&tick, 0);
}

/* Results in memory take the place of the bodies of new requests, so they get half of it. */
static bool too_much(void)
{
	return ended_count > config->result_count || bytes > config->result_size ||
	       memory > config->max_memory / 2;
}

static void make_room(const struct stored *newest)
{
	for (struct stored *s = first, *next; s && too_much(); s = next) {
		next = s->next;
		if (s->job->finished && s != newest)
			forget(s);
	}
}

/* Only a result that can be kept is one. */
static void take_result(struct stored *s)
{
	struct job *job = s->job;

	if (!job->error && job->answer.size > config->result_size)
		job->error = problem_set(&job->problem, ERR_RESULT_TOO_LARGE,
		                         "the result has %llu bytes; at most %llu are kept",
		                         (unsigned long long)job->answer.size,
		                         (unsigned long long)config->result_size);
	if (job->error)
		spool_close(&job->answer);
	s->bytes = job->answer.size;
	s->memory = job->answer.reserved;
}

static void job_ended(struct job *job, void *context)
{
	struct stored *s = context;

	take_result(s);
	detach(s);
	append(s);
	ended_count++;
	bytes += s->bytes;
	memory += s->memory;
	make_room(s);
	publish();
	on_end(s->id, job);
	tell_all(s);
}

static void look_at_all(void *context)
{
	uint64_t now = loop_now();

	(void)context;
	for (struct stored *s = first, *next; s; s = next) {
		next = s->next;
		if (s->job->finished && !stored_kept_for(s))
			forget(s);
		else if (stored_state(s) != s->told_state || stored_tiles_done(s) != s->told_tiles)
			tell_all(s);
		else
			tell_due(s, now);
	}
	publish();
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
	if (!first)
		loop_timer_repeat(&tick, TICK_MS);
	append(s);
	if (job_submit(job, job_ended, s)) {
		forget(s);
		s = NULL;
	}
	publish();
	return s;
}

struct stored *store_find(const char *id)
{
	struct stored *s = first;

	while (s && strcmp(s->id, id))
		s = s->next;
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

bool stored_ended(const struct stored *s)
{
	return s->job->finished;
}

uint32_t stored_tiles_done(const struct stored *s)
{
	/* What the reference filters never comes by here. */
	return stored_state(s) == STORED_DONE ? s->job->tiles : s->job->tiles_done;
}

bool stored_time_left(const struct stored *s, uint64_t *ns)
{
	const struct job *job = s->job;

	if (stored_state(s) != STORED_RUNNING || !job->tiles_done)
		return false;
	*ns = (loop_now() - job->times.started) / job->tiles_done * (job->tiles - job->tiles_done);
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
	enum error e = problem_set(&problem, ERR_CANCELLED, "a DELETE has ended it");

	if (!s->job->finished) {
		codecs_cancel(s->job, e, &problem);
		return;
	}
	forget(s);
	publish();
}

enum error store_init(const struct config *c, void (*ended)(const char *id, const struct job *job))
{
	config = c;
	on_end = ended;
	publish();
	return loop_timer_init(&tick, look_at_all, NULL);
}

void store_fini(void)
{
	while (first)
		forget(first);
	loop_timer_fini(&tick);
}
