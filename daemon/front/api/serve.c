/* Requests, from the side of their connections. */
#include "link/serve.h"

#include <stdio.h>
#include <string.h>

#include "base/loop.h"
#include "front/api/guest.h"
#include "front/api/origin.h"
#include "front/api/refusals.h"
#include "front/api/representation.h"
#include "front/api/request.h"
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

/* Takes over what is in the head. */
static struct request *make(struct head *head, const struct serve_calls *calls, void *context)
{
	struct request *r = request_new(head);

	if (!r)
		return NULL;
	r->cut = calls->cut;
	r->waiter.wake = calls->wake;
	r->waiter.context = context;
	return r;
}

/* A request for whose head there is no memory. */
static struct request *refuse_head(struct head *head, const char *client,
                                   enum share_outcome outcome, const struct serve_calls *calls,
                                   void *context)
{
	struct problem problem;
	enum error e = share_problem(outcome, SHARE_HEADS, client, HEADS_MAX, &problem);
	struct request *r = serve_refuse(client, e, &problem, calls, context);

	head_fini(head);
	return r;
}

struct request *serve_begin(struct guest *guest, struct head *head, const struct serve_calls *calls,
                            void *context)
{
	const char *client = head->text[HEAD_CLIENT] ? head->text[HEAD_CLIENT] : "";
	struct share memory = {0};
	enum share_outcome outcome =
	    share_take(&memory, SHARE_HEADS, client, head->size, HEADS_MAX);
	struct problem problem;
	struct request *r;
	enum error e;

	if (outcome)
		return refuse_head(head, client, outcome, calls, context);
	r = make(head, calls, context);
	if (!r) {
		share_give_all(&memory);
		return NULL;
	}
	r->head_memory = memory;
	count(1);
	e = guest_error(guest, &problem);
	if (!e)
		e = request_read(r, &problem);
	if (e)
		answer_problem(&r->answer, e, &problem);
	else
		routes_begin(r);
	if (e == ERR_CONTENT_CODED)
		answer_header(&r->answer, "Accept-Encoding", "identity");
	return r;
}

struct request *serve_refuse(const char *client, enum error error, const struct problem *problem,
                             const struct serve_calls *calls, void *context)
{
	struct head none = {0};
	struct request *r = make(&none, calls, context);

	if (!r)
		return NULL;
	snprintf(r->terms.client, sizeof r->terms.client, "%s", client);
	answer_problem(&r->answer, error, problem);
	return r;
}

/* True for the refusal of a client that has sent no request. */
static bool is_refusal(const struct request *r)
{
	return !r->method;
}

void serve_end(struct request *r)
{
	if (!is_refusal(r))
		count(-1);
	unread_end(&r->unread);
	request_free(r);
}

const struct head *serve_head(const struct request *r)
{
	return &r->head;
}

bool serve_is_decided(const struct request *r)
{
	(void)r;
	return true; /* in serve_begin() */
}

bool serve_is_answered(const struct request *r)
{
	return r->answer.status;
}

bool serve_wants_body(const struct request *r)
{
	return !r->answer.status && r->expected;
}

void serve_fail(struct request *r, enum error error, const struct problem *problem)
{
	if (r->answer.status)
		return;
	answer_problem(&r->answer, error, problem);
	request_drop_body(r); /* the answer may take its time */
}

bool serve_lend(struct request *r, uint64_t size, struct lent *lent)
{
	struct problem problem;
	enum error e = request_lend(r, size, lent, &problem);

	if (e)
		serve_fail(r, e, &problem);
	return !e && lent->fd >= 0;
}

enum error serve_part(struct request *r, const char *name, bool file, bool *image,
                      struct problem *problem)
{
	*image = serve_is_image(name, file);
	if (!*image)
		return request_add_parameter(r, name, "", problem);
	if (r->has_image)
		return problem_set_parameter(problem, ERR_BAD_REQUEST, name, "",
		                             "the form has two images; send one per request");
	r->has_image = true;
	return ERR_OK;
}

enum error serve_value(struct request *r, const char *data, size_t size, struct problem *problem)
{
	return request_extend_parameter(r, data, size, problem);
}

void serve_look(struct request *r)
{
	if (!r->answer.status)
		routes_resume(r);
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

bool serve_take(struct request *r, int fd, uint64_t size)
{
	struct problem problem;
	enum error e = request_take(r, fd, size, &problem);

	if (e)
		serve_fail(r, e, &problem);
	serve_finish(r, size);
	return true;
}

void serve_abandon(struct request *r)
{
	routes_abandon(r);
}

static void complete_headers(struct request *r)
{
	if (!answer_has(&r->answer, "Server-Timing"))
		answer_header(&r->answer, "Server-Timing", "total;dur=%.3f",
		              (double)(loop_now() - r->arrived) * 1e-6);
	answer_header(&r->answer, "X-Request-Id", "%s", r->id);
	representation_protect(&r->answer);
	representation_vary(&r->answer, r->route && r->route->traits & BY_ACCEPT);
	origin_mark(r);
}

static void note_refusal(const struct request *r)
{
	refusals_note(&(struct refusal){.client = r->terms.client,
	                                .reason = r->answer.reason,
	                                .detail = r->answer.detail,
	                                .status = r->answer.status,
	                                .request = r->id});
}

/* A balancer that repeats requests at another node may know which by the status alone, and not know
 * 429; so a refusal because of load gets the status that it asks for. Accounts have 429. */
static void restate(struct request *r)
{
	const char *asked = r->head.text[HEAD_BUSY_STATUS];

	if (r->answer.status != 429 || !asked || strcmp(asked, "503"))
		return;
	answer_header(&r->answer, "X-Busy-Status", "%d", r->answer.status);
	r->answer.status = 503;
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
	complete_headers(r);
	if (is_refusal(r)) {
		note_refusal(r);
		return &r->answer;
	}
	representation_revalidate(&r->answer, r->head.text[HEAD_IF_NONE_MATCH]);
	count_unread(r);
	request_drop_body(r);
	routes_answered(r);
	restate(r);
	return &r->answer;
}

void serve_read(struct request *r, uint64_t bytes)
{
	if (r->unread.id)
		unread_report(&r->unread, bytes);
}

bool serve_streams(const struct request *r)
{
	return r->stream;
}

const struct answer *serve_piece(struct request *r)
{
	answer_piece(&r->answer, NULL, 0);
	return r->stream(r) ? &r->answer : NULL;
}
