/* Asynchronous jobs as clients see them: state, result, events. A woken request looks its job up in
 * the store again, so a job that was forgotten meanwhile is simply not found. */
#include "front/api/async.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "front/jobs/store.h"

enum { WAIT_MAX = 300 };                    /* seconds */
static const uint64_t second = 1000000000u; /* in nanoseconds */
/* The time between two progress events; the silence after which a comment tests whether the client
 * is there. */
static const uint64_t event_ns = 200000000u, silence_ns = 5000000000u;

static json_t *describe(const struct stored *s)
{
	static const char *const names[STORED_STATES] = {"waiting", "running", "done", "failed",
	                                                 "cancelled"};
	const struct job *job = s->job;
	enum stored_state state = stored_state(s);
	uint64_t left_ns = 0;
	bool predicted = stored_time_left(s, &left_ns);
	json_t *lost = state == STORED_DONE ? json_array() : NULL;

	for (enum loss l = 0; lost && l < LOSSES; l++)
		if (job->lost >> l & 1)
			json_array_append_new(lost, json_string(loss_token(l)));
	return json_pack(
	    "{s:s, s:s, s:{s:I, s:o}, s:o, s:{s:o, s:o, s:o}, s:o*, s:o*, s:o*}", "id", s->id,
	    "state", names[state], "progress", "tiles_done", (json_int_t)stored_tiles_done(s),
	    "tiles", job->image_known ? json_integer(job_tiles(job)) : json_null(), "left_seconds",
	    predicted ? json_real((double)left_ns * 1e-9) : json_null(), "links", "self",
	    json_sprintf("/v1/jobs/%s", s->id), "result", json_sprintf("/v1/jobs/%s/result", s->id),
	    "events", json_sprintf("/v1/jobs/%s/events", s->id), "kept_seconds",
	    job->finished ? json_integer((json_int_t)(stored_kept_for(s) / second)) : NULL, "lost",
	    lost, "problem",
	    state == STORED_FAILED ? answer_describe_problem(job->error, &job->problem) : NULL);
}

void async_accept(struct request *r)
{
	struct stored *s = store_add(r->id, r->job, r->arrived);

	r->job = NULL; /* owned by the store, or NULL if it has gone */
	if (!s) {
		answer_problem(&r->answer, ERR_MEMORY, NULL);
		return;
	}
	answer_json(&r->answer, 202, describe(s));
	answer_header(&r->answer, "Location", "/v1/jobs/%s", s->id);
	answer_header(&r->answer, "Preference-Applied", "respond-async");
}

/* Returns the job that the request names. NULL: there is none, and the request is answered so. A
 * job belongs to the token with which it was submitted; without tokens, to anyone who knows its
 * id. */
static struct stored *find(struct request *r)
{
	struct stored *s = store_find(r->argument);
	const struct job_terms *mine = &r->terms, *its = s ? &s->job->terms : NULL;
	struct problem problem;

	if (s && mine->named == its->named && (!mine->named || !strcmp(mine->client, its->client)))
		return s;
	problem_set(&problem, ERR_NOT_FOUND,
	            "no job has this id; results are kept for a limited time, and new ones "
	            "displace the oldest");
	answer_problem(&r->answer, ERR_NOT_FOUND, &problem);
	return NULL;
}

/* Returns the job that the request names, once it has ended or the seconds of wait= are over. NULL:
 * the request has its answer, or waits. */
static struct stored *find_and_wait(struct request *r)
{
	static const struct value_kind kind = {VALUE_INTEGER, 0, WAIT_MAX, "seconds"};
	struct stored *s = find(r);
	struct problem problem;
	double wait = 0;
	uint64_t due;

	for (unsigned i = 0; s && i < r->head.parameters; i++)
		if (!strcmp(r->head.parameter[i].name, "wait") &&
		    value_parse(&kind, "wait", r->head.parameter[i].value, &wait, &problem)) {
			answer_problem(&r->answer, ERR_BAD_PARAMETER, &problem);
			return NULL;
		}
	due = r->arrived + (uint64_t)wait * second;
	if (!s || s->job->finished || loop_now() >= due)
		return s;
	store_wait(s, &r->waiter, due);
	return NULL;
}

void async_get_job(struct request *r)
{
	struct stored *s = find_and_wait(r);

	if (s)
		answer_json(&r->answer, 200, describe(s));
}

void async_get_result(struct request *r)
{
	struct stored *s = find_and_wait(r);
	struct problem problem;
	uint64_t left_ns = 0;

	if (!s)
		return;
	if (!s->job->finished) {
		stored_time_left(s, &left_ns);
		problem_set(&problem, ERR_NOT_FINISHED,
		            "the job is waiting or running; use wait=SECONDS to wait for its end");
		answer_problem(&r->answer, ERR_NOT_FINISHED, &problem);
		answer_header(&r->answer, "Retry-After", "%" PRIu64, left_ns / second + 1);
		return;
	}
	r->job = s->job; /* the store may forget it before all of it is sent */
	job_hold(r->job);
	answer_job(&r->answer, r->job, r->job->times.accepted - s->arrived);
	if (!r->job->error)
		r->answer.version = strtoull(s->id, NULL, 16); /* less the node */
}

void async_delete_job(struct request *r)
{
	struct stored *s = find(r);

	if (!s)
		return;
	store_delete(s);
	r->answer.status = 204;
}

static bool write_event(struct request *r, const struct stored *s, const char *name)
{
	json_t *json = describe(s);
	char *data = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)), *text = NULL;
	int size = data ? asprintf(&text, "event: %s\ndata: %s\n\n", name, data) : -1;

	free(data);
	json_decref(json);
	answer_piece(&r->answer, size < 0 ? NULL : text, size < 0 ? 0 : (size_t)size);
	return size >= 0;
}

/* Makes the next piece of an event stream: compares the job with the state that this client was
 * last told, and adds a comment after a long silence. Without memory the stream ends. */
static bool next_event(struct request *r)
{
	struct stored *s = store_find(r->argument);
	struct told *told = &r->told;
	uint64_t now = loop_now(), since = now - told->at;
	bool news;

	if (!s || told->end)
		return false;
	news = !told->at || told->state != stored_state(s) || told->tiles != stored_tiles_done(s);
	told->end = s->job->finished;
	if (told->end)
		return write_event(r, s, "end");
	if (news && since >= event_ns) {
		*told = (struct told){now, stored_state(s), stored_tiles_done(s), false};
		return write_event(r, s, "progress");
	}
	if (since >= silence_ns) {
		told->at = now;
		answer_piece(&r->answer, strdup(":\n\n"), 3);
		return r->answer.text;
	}
	store_wait(s, &r->waiter, told->at + (news ? event_ns : silence_ns));
	return true;
}

void async_get_events(struct request *r)
{
	if (!find(r))
		return;
	r->stream = next_event;
	r->answer.status = 200;
	r->answer.content_type = "text/event-stream";
}
