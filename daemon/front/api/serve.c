/* Requests, from the side of their connections. */
#include "front/api/serve.h"

#include <string.h>

#include "front/api/origin.h"
#include "front/api/refusals.h"
#include "front/api/representation.h"
#include "front/api/request.h"
#include "front/api/routes.h"
#include "front/base/loop.h"

struct request *serve_begin(struct head *head, const struct serve_calls *calls, void *context)
{
	struct request *r = request_new(head);
	struct problem problem;
	enum error e;

	if (!r)
		return NULL;
	r->cut = calls->cut;
	r->waiter.wake = calls->wake;
	r->waiter.context = context;
	e = request_read(r, &problem);
	if (e)
		answer_problem(&r->answer, e, &problem);
	else
		routes_begin(r);
	if (e == ERR_CONTENT_CODED)
		answer_header(&r->answer, "Accept-Encoding", "identity");
	return r;
}

void serve_end(struct request *r)
{
	unread_end(&r->unread);
	request_free(r);
}

const struct head *serve_head(const struct request *r)
{
	return &r->head;
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
	/* With curl -F chain=@FILE the parameter has a file name. */
	*image = file ? strcmp(name, "chain") : !strcmp(name, "image");
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
	serve_look(r);
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
	representation_vary(&r->answer, r->route && !r->route->act);
	origin_mark(r);
}

const struct answer *serve_answer(struct request *r, bool plain)
{
	complete_headers(r);
	if (!plain) {
		representation_revalidate(&r->answer, r->head.text[HEAD_IF_NONE_MATCH]);
		representation_compress(&r->answer, r->head.text[HEAD_ACCEPT_ENCODING]);
	}
	request_drop_body(r);
	routes_answered(r);
	if (r->answer.file >= 0 && r->answer.status != 304)
		unread_begin(&r->unread, r->id, r->terms.client, r->answer.file_size, r->cut,
		             r->waiter.context);
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

void serve_refuse(struct answer *answer, const char *client, enum error error,
                  const struct problem *problem)
{
	answer_init(answer);
	answer_problem(answer, error, problem);
	representation_protect(answer);
	refusals_note(&(struct refusal){.client = client,
	                                .reason = answer->reason,
	                                .detail = answer->detail,
	                                .status = answer->status});
}
