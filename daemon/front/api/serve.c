/* The ends of requests. */
#include "front/api/serve.h"

#include <stdio.h>
#include <string.h>

#include "base/loop.h"
#include "front/api/origin.h"
#include "front/api/outcome.h"
#include "front/api/representation.h"
#include "front/api/routes.h"
#include "front/base/metrics.h"

/* Bytes of the heads of all requests that have begun and have not ended. */
enum { HEADS_MAX = 256 << 20 };

static unsigned requests; /* that have begun and have not ended */

static void count(int change)
{
	requests += (unsigned)change;
	metric_set(METRIC_REQUESTS, NULL, NULL, requests);
}

struct request *serve_begin(struct head *head, enum error refused, const struct problem *why,
                            void (*wake)(void *context), void (*cut)(void *context), void *context)
{
	const char *client = head->text[HEAD_CLIENT] ? head->text[HEAD_CLIENT] : "";
	struct share memory = {0};
	enum share_outcome outcome =
	    share_take(&memory, SHARE_HEADS, client, head->size, HEADS_MAX);
	struct problem problem;
	struct request *r;
	enum error e;

	if (outcome) {
		e = share_problem(outcome, SHARE_HEADS, client, HEADS_MAX, &problem);
		r = serve_refuse(client, e, &problem);
		head_fini(head); /* which the client's name is in */
		return r;
	}
	r = request_new(head);
	if (!r) {
		share_give_all(&memory);
		return NULL;
	}
	r->head_memory = memory;
	r->waiter.wake = wake;
	r->waiter.context = context;
	r->cut = cut;
	count(1);
	e = refused ? refused : request_read(r, &problem);
	if (e)
		answer_problem(&r->answer, e, refused ? why : &problem);
	else
		routes_begin(r);
	if (e == ERR_CONTENT_CODED)
		answer_header(&r->answer, "Accept-Encoding", "identity");
	return r;
}

struct request *serve_refuse(const char *client, enum error error, const struct problem *problem)
{
	struct head none = {0};
	struct request *r = request_new(&none);

	if (!r)
		return NULL;
	snprintf(r->terms.client, sizeof r->terms.client, "%s", client);
	answer_problem(&r->answer, error, problem);
	return r;
}

void serve_end(struct request *r)
{
	if (r->method) /* or it is a refusal */
		count(-1);
	unread_end(&r->unread);
	request_free(r);
}

void serve_fail(struct request *r, enum error error, const struct problem *problem)
{
	if (r->answer.status)
		return;
	answer_problem(&r->answer, error, problem);
	request_drop_body(r); /* the answer may take its time */
}

void serve_finish(struct request *r, uint64_t size)
{
	struct problem problem;
	enum error e = r->answer.status ? ERR_OK : request_settle(r, size, &problem);

	if (e)
		serve_fail(r, e, &problem);
	if (!r->answer.status)
		routes_finish(r);
}

static void complete_headers(struct request *r)
{
	if (!answer_has(&r->answer, "Server-Timing"))
		answer_header(&r->answer, "Server-Timing", "total;dur=%.3f",
		              (double)(loop_now() - r->arrived) * 1e-6);
	answer_header(&r->answer, "X-Request-Id", "%s", r->id);
	representation_finish(&r->answer, r->route && r->route->traits & BY_ACCEPT);
	origin_mark(r);
}

/* Counts what the client has to read of a file; if there is no room for it, the answer is that. */
static void count_unread(struct request *r)
{
	struct problem problem;
	enum error e;

	if (r->answer.file < 0 || r->answer.status == 304)
		return;
	e = unread_begin(&r->unread, r->id, r->terms.client, r->answer.file_size, r->cut,
	                 r->waiter.context, &problem);
	if (!e)
		return;
	answer_fini(&r->answer);
	answer_init(&r->answer);
	answer_problem(&r->answer, e, &problem);
	complete_headers(r);
}

const struct answer *serve_answer(struct request *r)
{
	const char *busy_status = r->head.text[HEAD_BUSY_STATUS];

	complete_headers(r);
	representation_revalidate(&r->answer, r->head.text[HEAD_IF_NONE_MATCH]);
	count_unread(r);
	request_drop_body(r);
	outcome_answered(r);
	/* A balancer that repeats requests at another node may know which by the status alone, and
	 * not know 429; so a refusal because of load gets the status that it asks for. Accounts
	 * have 429. */
	if (r->answer.status == 429 && busy_status && !strcmp(busy_status, "503")) {
		answer_header(&r->answer, "X-Busy-Status", "%d", r->answer.status);
		r->answer.status = 503;
	}
	return &r->answer;
}
