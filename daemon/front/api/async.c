/* Asynchronous jobs as clients see them: state, result, events. A woken request looks its job up in
 * the store again, so a job that was forgotten meanwhile is simply not found. */
#include "front/api/async.h"

#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/errand.h"
#include "base/file.h"
#include "base/loop.h"
#include "front/jobs/store.h"

enum { WAIT_MAX = 300 };                    /* seconds */
static const uint64_t second = 1000000000u; /* in nanoseconds */
/* The time between two progress events, and the silence before a comment tests the client. */
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
			json_array_append_new(lost, json_string(loss_rows[l].token));
	return json_pack(
	    "{s:s, s:s, s:{s:I, s:o}, s:o, s:{s:o, s:o, s:o}, s:o*, s:o*, s:o*}", "id", s->id,
	    "state", names[state], "progress", "tiles_done", (json_int_t)stored_tiles_done(s),
	    "tiles",
	    job->image_known || stored_ended(s) ? json_integer(job_tiles(job)) : json_null(),
	    "left_seconds", predicted ? json_real((double)left_ns * 1e-9) : json_null(), "links",
	    "self", json_sprintf("/v1/jobs/%s", s->id), "result",
	    json_sprintf("/v1/jobs/%s/result", s->id), "events",
	    json_sprintf("/v1/jobs/%s/events", s->id), "kept_seconds",
	    stored_ended(s) ? json_integer((json_int_t)(stored_kept_for(s) / second)) : NULL,
	    "lost", lost, "problem",
	    state == STORED_FAILED ? answer_describe_problem(job->error, &job->problem) : NULL);
}

/* The digest of a request, which tells it from others with its key. */
struct fingerprint {
	struct errand errand; /* must be first */
	struct head_writer head;
	int body;
	uint64_t size; /* the body's */
	uint8_t digest[ARCHIVE_DIGEST];
	bool failed;
};

/* Runs in the thread. */
static void take_fingerprint(struct errand *errand)
{
	enum { PIECE = 1 << 18 };
	struct fingerprint *f = (struct fingerprint *)errand;
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	gsize length = sizeof f->digest;
	guchar *piece = g_malloc(PIECE);

	g_checksum_update(sum, (const guchar *)f->head.data, (gssize)f->head.size);
	for (uint64_t at = 0; at < f->size && !f->failed; at += PIECE) {
		const size_t count = MIN(PIECE, f->size - at);

		f->failed = !file_read(f->body, piece, count, at);
		g_checksum_update(sum, piece, (gssize)count);
	}
	g_checksum_get_digest(sum, f->digest, &length);
	g_free(piece);
	g_checksum_free(sum);
}

static void free_fingerprint(struct errand *errand)
{
	struct fingerprint *f = (struct fingerprint *)errand;

	file_close(&f->body);
	free(f->head.data);
	free(f);
}

/* Returns the digest once it is there; else the request waits, or has its answer. */
static const uint8_t *get_digest(struct request *r)
{
	struct fingerprint *f = r->fingerprint;

	if (!f) {
		f = r->fingerprint = calloc(1, sizeof *f);
		if (!f) {
			answer_problem(&r->answer, ERR_MEMORY, NULL);
			return NULL;
		}
		f->errand.run = take_fingerprint;
		f->errand.free = free_fingerprint;
		f->body = fcntl(r->job->body.fd, F_DUPFD_CLOEXEC, 0);
		f->size = r->job->body.size;
		head_pack(&f->head, &r->head);
		f->failed = f->head.failed;
		errand_send(ERRAND_WRITE, &f->errand);
	}
	if (errand_await(&f->errand, r->waiter.wake, r->waiter.context))
		return NULL;
	if (!f->failed)
		return f->digest;
	fail_with(answer_problem, &r->answer, ERR_IO, "the body cannot be read");
	return NULL;
}

/* Stores the request's job, unless its key has one already. NULL: it waits, or has its answer. */
static struct stored *store(struct request *r)
{
	struct record asked = {.key = r->key};
	const uint8_t *digest = r->key ? get_digest(r) : NULL;
	struct stored *s = digest ? store_find_key(&r->terms, r->key) : NULL;

	if (r->key && !digest)
		return NULL;
	if (s && memcmp(s->record.digest, digest, ARCHIVE_DIGEST) != 0) {
		fail_with(answer_problem, &r->answer, ERR_KEY_REUSED,
		          "this Idempotency-Key belongs to a job whose image or parameters "
		          "were others: expected a new key for each request");
		return NULL;
	}
	if (s)
		return s;
	if (digest)
		memcpy(asked.digest, digest, ARCHIVE_DIGEST);
	if (archive_is_open())
		head_pack(&asked.head, &r->head);
	if (!asked.head.failed) {
		s = store_add(r->id, r->job, r->arrived, &asked);
		r->job = NULL; /* owned by the store, or NULL if it has gone */
	}
	free(asked.head.data);
	if (!s)
		answer_problem(&r->answer, ERR_MEMORY, NULL);
	return s;
}

void async_accept(struct request *r)
{
	struct stored *s = *r->stored ? store_find_any(r->stored) : store(r);

	if (!s && !*r->stored)
		return;
	if (s && s->under_way && s->step.act == ARCHIVE_ADD) {
		strcpy(r->stored, s->id);
		store_wait(s, &r->waiter, UINT64_MAX);
		return;
	}
	if (!s || s->hidden) {
		if (s && s->step.error)
			answer_problem(&r->answer, s->step.error, &s->step.problem);
		else
			fail_with(answer_problem, &r->answer, ERR_STORAGE_UNUSABLE,
			          "the job could not be stored");
		return;
	}
	answer_json(&r->answer, 202, describe(s));
	answer_header(&r->answer, "Location", "/v1/jobs/%s", s->id);
	answer_header(&r->answer, "Preference-Applied", "respond-async");
}

/* Returns the job that the request names. NULL: none, and it is answered so. A job belongs to the
 * token with which it was submitted; without tokens, to anyone who knows its id. */
static struct stored *find(struct request *r)
{
	struct stored *s = store_find_any(r->argument);
	const struct job_terms *mine = &r->terms, *its = s && s->job ? &s->job->terms : NULL;
	const bool is_mine = its && mine->named == its->named &&
	                     (!mine->named || !strcmp(mine->client, its->client));
	enum error e = ERR_STORAGE_UNUSABLE;
	struct problem problem;

	if (is_mine && stored_is_shown(s))
		return s;
	if (is_mine && s->stuck) /* it could not be deleted, and would be back after a restart */
		problem_set(&problem, e = s->step.error, "it is being deleted: %s",
		            s->step.problem.detail);
	else if (!archive_check(&problem)) /* it may know the job */
		problem_set(&problem, e = ERR_NOT_FOUND,
		            "no job has this id; results are kept for a limited time, and new "
		            "ones displace the oldest");
	answer_problem(&r->answer, e, &problem);
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
	if (!s || stored_ended(s) || loop_now() >= due || store_is_leaving())
		return s;
	store_wait(s, &r->waiter, due);
	return NULL;
}

void async_list(struct request *r)
{
	const char *client = r->terms.client;
	/* The address is not that of many: a user at a Unix socket, or this host (:: is ::1 by its
	 * first 64 bits). */
	const bool local =
	    !strncmp(client, "user ", 5) || !strncmp(client, "127.", 4) || !strcmp(client, "::");
	struct problem problem;
	enum error e = archive_check(&problem);
	json_t *jobs;

	/* Without tokens an id is what only its owner knows. */
	if (!e && !r->terms.named && !local)
		e = problem_set(&problem, ERR_LIST_FORBIDDEN,
		                "without a token jobs are listed at a loopback address or a Unix "
		                "socket only; ask for each by its id");
	if (e) {
		answer_problem(&r->answer, e, &problem);
		return;
	}
	jobs = json_array();
	for (struct stored *s = store_next(NULL); s; s = store_next(s))
		if (stored_is_of(s, &r->terms))
			json_array_append_new(jobs, describe(s));
	answer_json(&r->answer, 200, json_pack("{s:o}", "jobs", jobs));
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
	uint64_t left_ns = 0;

	if (!s)
		return;
	if (!stored_ended(s)) {
		stored_time_left(s, &left_ns);
		fail_with(answer_problem, &r->answer, ERR_NOT_FINISHED,
		          "the job is waiting or running; use wait=SECONDS to wait for its end");
		answer_header(&r->answer, "Retry-After", "%" PRIu64, left_ns / second + 1);
		return;
	}
	r->job = s->job; /* the store may forget it before all of it is sent */
	job_hold(r->job);
	if (!s->record.answer.size) {
		answer_job(&r->answer, r->job, r->job->times.accepted - s->arrived);
	} else if (answer_unpack(&r->answer, s->record.answer.data, s->record.answer.size)) {
		answer_fini(&r->answer);
		answer_problem(&r->answer, ERR_INTERNAL, NULL);
	} else if (!r->job->error) {
		r->answer.file = r->job->answer.fd;
		r->answer.file_size = r->job->answer.size;
	}
	if (!r->job->error)
		r->answer.version = strtoull(s->id, NULL, 16); /* less the node */
}

void async_delete_job(struct request *r)
{
	struct stored *s = r->deleted ? store_find_any(r->argument) : find(r);

	if (!s && !r->deleted)
		return;
	if (!r->deleted) {
		r->deleted = true;
		store_delete(s); /* it may be gone */
		s = store_find_any(r->argument);
	}
	if (s && s->under_way)
		store_wait(s, &r->waiter, UINT64_MAX);
	else if (s && s->step.error)
		answer_problem(&r->answer, s->step.error, &s->step.problem);
	else
		r->answer.status = 204;
}

void async_pack(const struct stored *s, struct head_writer *block)
{
	const struct job *job = s->job;
	struct answer answer;

	answer_init(&answer);
	answer_job(&answer, job, job->times.accepted - s->arrived);
	answer_pack(&answer, block);
	head_append(block, answer.text, answer.text_size);
	block->failed |= answer.failed;
	answer_fini(&answer);
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
	struct stored *s = store_find_any(r->argument);
	struct told *told = &r->told;
	uint64_t now = loop_now(), since = now - told->at;
	bool news;

	if (!s || !stored_is_shown(s) || told->end || (store_is_leaving() && told->at))
		return false;
	news = !told->at || told->state != stored_state(s) || told->tiles != stored_tiles_done(s);
	told->end = stored_ended(s);
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
