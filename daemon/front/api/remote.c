/* Requests of HTTP workers. A woken request is looked at in the next turn of the loop, as who wakes
 * it is in the middle of something. What is sent to a worker never waits: link.c queues it. */
#include "front/api/remote.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/serve.h"
#include "common/wire.h"
#include "front/base/link.h"
#include "front/base/link_answer.h"
#include "front/jobs/shares.h"

/* More requests than there are guests, with refusals. */
enum { REQUESTS_MAX = 1 << 20 };

struct remote {
	struct link link;
	GHashTable *requests, *guests; /* by number */
	const struct remote_calls *calls;
	void *context;
	bool pinged; /* and has not answered */
	bool drained;
	bool broken; /* nothing is read any more */
};

struct remote_request {
	gint64 number; /* its key */
	struct remote *remote;
	struct request *request;
	struct remote_guest *guest; /* NULL: of a refusal */
	uint64_t asked;             /* bytes for which room is wanted; 0: none */
	uint64_t lent;              /* for which there is */
	bool most;                  /* there will not be more */
	bool parameter;             /* a parameter of its form has begun */
	bool finished, answered;
	bool awaits_piece;
	TAILQ_ENTRY(remote_request) due;
	bool is_due;
};

struct remote_guest {
	gint64 number; /* its key */
	struct remote *remote;
	struct guest *guest;
	struct remote_request *request; /* a connection has one at a time */
};

static TAILQ_HEAD(due_list, remote_request) due = TAILQ_HEAD_INITIALIZER(due);

/* The worker is to blame, or has gone. */
static void give_up(struct remote *remote, const char *what)
{
	if (remote->broken)
		return;
	remote->broken = true;
	remote->calls->broken(remote->context, what);
}

static void send_message(struct remote *remote, enum link_type type, gint64 number, uint64_t size,
                         uint32_t flags, const void *data, size_t data_size, int fd)
{
	struct link_message message = {
	    .type = type, .flags = flags, .number = (uint64_t)number, .size = size};

	if (!remote->broken && !link_send(&remote->link, &message, data, data_size, fd))
		give_up(remote, NULL);
}

/* Guests ------------------------------------------------------------------------------------- */

/* More than an honest worker has: connections that are refused last a little while. */
static uint64_t guests_most(void)
{
	return 32768 + 2 * share_connections_most();
}

static void tell_crowded(void *context, enum error error, const struct problem *problem)
{
	struct remote_guest *g = context;

	send_message(g->remote, LINK_CROWDED, g->number, error, 0, problem, sizeof *problem, -1);
}

static void drop_guest(void *context)
{
	struct remote_guest *g = context;

	guest_free(g->guest);
	free(g);
}

/* Ends a guest's request, if it has one. False: that has no answer yet. */
static bool end_answered(struct remote_guest *g)
{
	gint64 number;

	if (!g->request)
		return true;
	number = g->request->number;
	return g->request->answered && g_hash_table_remove(g->remote->requests, &number);
}

static bool take_guest(struct remote *remote, const struct link_message *message)
{
	struct remote_guest *g;
	gint64 number = (gint64)message->number;

	if (g_hash_table_contains(remote->guests, &number) ||
	    g_hash_table_size(remote->guests) >= guests_most())
		return false;
	g = calloc(1, sizeof *g);
	if (!g)
		return false;
	g->number = number;
	g->remote = remote;
	g->guest = guest_new(tell_crowded, g);
	g_hash_table_insert(remote->guests, &g->number, g);
	return g->guest;
}

static bool take_guest_message(struct remote *remote, const struct link_message *message,
                               const char *data, size_t size)
{
	gint64 number = (gint64)message->number;
	struct remote_guest *g = g_hash_table_lookup(remote->guests, &number);
	char name[LINK_NAME_SIZE];

	if (!g)
		return false;
	if (message->type == LINK_GUEST_END)
		return end_answered(g) && g_hash_table_remove(remote->guests, &number);
	if (size >= sizeof name)
		return false;
	memcpy(name, data, size + 1);
	wire_text(name, sizeof name);
	guest_name(g->guest, name, message->flags & LINK_IS_PROXY);
	return true;
}

/* Requests ----------------------------------------------------------------------------------- */

static void wake(void *context)
{
	struct remote_request *r = context;

	if (!r->is_due)
		TAILQ_INSERT_TAIL(&due, r, due);
	r->is_due = true;
}

static void cut(void *context)
{
	struct remote_request *r = context;

	send_message(r->remote, LINK_CUT, r->number, 0, 0, NULL, 0, -1);
}

static const struct serve_calls calls = {wake, cut};

static void lend(struct remote_request *r)
{
	struct lent lent;

	if (!serve_lend(r->request, r->asked, &lent))
		return;
	r->asked = 0;
	r->lent = lent.limit;
	r->most = lent.most;
	send_message(r->remote, LINK_ROOM, r->number, lent.limit,
	             (lent.in_memory ? LINK_IS_IN_MEMORY : 0) | (lent.most ? LINK_IS_MOST : 0),
	             NULL, 0, lent.fd);
}

/* A small body will be there soon: room for it saves the worker the question. */
static void lend_at_once(struct remote_request *r)
{
	uint64_t size = serve_head(r->request)->announced;

	if (!size || size > SERVE_WHOLE_MAX || !serve_wants_body(r->request))
		return;
	r->asked = size;
	lend(r);
	r->asked = 0; /* without room the worker asks again */
}

static void send_piece(struct remote_request *r)
{
	const struct answer *piece = serve_piece(r->request);

	if (piece && !piece->text_size)
		return; /* it wakes the request */
	r->awaits_piece = false;
	send_message(r->remote, LINK_PIECE, r->number, 0, piece ? 0 : LINK_IS_LAST,
	             piece ? piece->text : NULL, piece ? piece->text_size : 0, -1);
}

static void send_answer(struct remote_request *r)
{
	r->answered = true;
	if (!r->remote->broken &&
	    !link_send_answer(&r->remote->link, (uint64_t)r->number, serve_answer(r->request),
	                      serve_streams(r->request)))
		give_up(r->remote, NULL);
}

/* Something has happened to a request: does what follows, and tells the worker. */
static void go_on(struct remote_request *r)
{
	if (r->answered) {
		if (r->awaits_piece)
			send_piece(r);
		return;
	}
	if (!serve_is_answered(r->request) && r->asked)
		lend(r);
	else if (!serve_is_answered(r->request) && r->finished)
		serve_look(r->request);
	if (serve_is_answered(r->request))
		send_answer(r);
}

void remotes_turn(void)
{
	struct remote_request *r;

	while ((r = TAILQ_FIRST(&due))) {
		TAILQ_REMOVE(&due, r, due);
		r->is_due = false;
		go_on(r);
	}
}

static void drop_request(void *context)
{
	struct remote_request *r = context;

	if (r->is_due)
		TAILQ_REMOVE(&due, r, due);
	if (r->guest)
		r->guest->request = NULL;
	if (r->request)
		serve_end(r->request);
	free(r);
}

static struct remote_request *add_request(struct remote *remote, gint64 number)
{
	struct remote_request *r;

	if (g_hash_table_contains(remote->requests, &number) ||
	    g_hash_table_size(remote->requests) >= REQUESTS_MAX)
		return NULL;
	r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->number = number;
	r->remote = remote;
	g_hash_table_insert(remote->requests, &r->number, r);
	return r;
}

/* The request is complete, with a body (*fd, -1 once it is taken) or without one. */
static void take_whole(struct remote_request *r, int *fd)
{
	r->finished = true;
	if (serve_is_answered(r->request))
		return;
	if (*fd >= 0 && serve_wants_body(r->request) &&
	    serve_take(r->request, *fd, serve_head(r->request)->announced))
		*fd = -1;
	else
		serve_finish(r->request, 0);
}

/* True if what is announced fits the type of the message. */
static bool size_fits(const struct link_message *message)
{
	if (message->type == LINK_WHOLE)
		return message->size && message->size <= SERVE_WHOLE_MAX;
	return !(message->flags & LINK_IS_COMPLETE) || !message->size;
}

static bool take_head(struct remote *remote, const struct link_message *message, const char *data,
                      size_t size, int *fd)
{
	gint64 number = (gint64)message->guest;
	struct remote_guest *g = g_hash_table_lookup(remote->guests, &number);
	struct remote_request *r = g && size_fits(message) && end_answered(g)
	                               ? add_request(remote, (gint64)message->number)
	                               : NULL;
	char *block = r ? malloc(size + 1) : NULL;
	struct head head;

	if (!block)
		return false;
	memcpy(block, data, size);
	if (head_read(&head, block, size)) {
		head_fini(&head);
		return false;
	}
	head.announced = message->size;
	head.loopback = message->flags & LINK_IS_LOOPBACK;
	head.monitoring = message->flags & LINK_IS_MONITORING;
	head.form = message->flags & LINK_IS_FORM;
	r->guest = g;
	g->request = r;
	r->request = serve_begin(g->guest, &head, &calls, r);
	if (!r->request)
		return false;
	if (message->type == LINK_WHOLE || message->flags & LINK_IS_COMPLETE)
		take_whole(r, fd);
	else
		lend_at_once(r);
	if (serve_is_answered(r->request))
		send_answer(r);
	else if (!r->lent && !r->finished)
		send_message(remote, LINK_DECIDED, r->number, 0,
		             serve_wants_body(r->request) ? LINK_IS_WANTED : 0, NULL, 0, -1);
	return true;
}

/* Reads an error and what is said of it. */
static bool read_problem(const struct link_message *message, const char *data, size_t size,
                         struct problem *problem)
{
	if (message->size == ERR_OK || message->size >= ERR_COUNT || size < sizeof *problem)
		return false;
	memcpy(problem, data, sizeof *problem);
	wire_text(problem->parameter, sizeof problem->parameter);
	wire_text(problem->value, sizeof problem->value);
	wire_text(problem->detail, sizeof problem->detail);
	return true;
}

static bool take_refusal(struct remote *remote, const struct link_message *message,
                         const char *data, size_t size)
{
	struct problem problem;
	char name[LINK_NAME_SIZE];
	struct remote_request *r;

	if (!read_problem(message, data, size, &problem) || size - sizeof problem >= sizeof name)
		return false;
	memcpy(name, data + sizeof problem, size - sizeof problem + 1);
	wire_text(name, sizeof name);
	r = add_request(remote, (gint64)message->number);
	if (r)
		r->request = serve_refuse(name, (enum error)message->size, &problem, &calls, r);
	if (!r || !r->request)
		return false;
	r->finished = true;
	send_answer(r);
	return true;
}

static bool take_part(struct remote_request *r, const struct link_message *message,
                      const char *data, size_t size)
{
	struct problem problem;
	enum error e;
	bool image;

	if (!serve_head(r->request)->form || r->finished || strlen(data) != size)
		return false;
	if (serve_is_answered(r->request))
		return true;
	e = serve_part(r->request, data, message->flags & LINK_IS_FILE, &image, &problem);
	r->parameter = !e && !image;
	if (e)
		serve_fail(r->request, e, &problem);
	return true;
}

static bool take_value(struct remote_request *r, const char *data, size_t size)
{
	struct problem problem;
	enum error e;

	if (serve_is_answered(r->request))
		return !r->finished;
	if (!r->parameter || r->finished)
		return false;
	e = serve_value(r->request, data, size, &problem);
	if (e)
		serve_fail(r->request, e, &problem);
	return true;
}

static bool take_finish(struct remote_request *r, uint64_t size)
{
	if (r->finished || size > r->lent)
		return false;
	r->finished = true;
	r->asked = 0;
	if (!serve_is_answered(r->request))
		serve_finish(r->request, size);
	return true;
}

static bool take_fail(struct remote_request *r, const struct link_message *message,
                      const char *data, size_t size)
{
	struct problem problem;

	if (!read_problem(message, data, size, &problem))
		return false;
	if (!serve_is_answered(r->request))
		serve_fail(r->request, (enum error)message->size, &problem);
	return true;
}

/* What is done for an answer that nobody will read. */
static bool abandon(struct remote_request *r)
{
	if (r->finished && !r->answered && !serve_is_answered(r->request))
		serve_abandon(r->request);
	return true;
}

static bool take_lend(struct remote_request *r, uint64_t size)
{
	if (r->finished)
		return false;
	if (serve_is_answered(r->request))
		return true;
	if (!serve_wants_body(r->request) || r->asked || r->most || size <= r->lent)
		return false;
	r->asked = size;
	return true;
}

static bool take_next(struct remote_request *r)
{
	if (!r->answered || !serve_streams(r->request) || r->awaits_piece)
		return false;
	r->awaits_piece = true;
	return true;
}

/* A message about a request. False: it cannot be. */
static bool take_request(struct remote_request *r, const struct link_message *message,
                         const char *data, size_t size)
{
	switch ((enum link_type)message->type) {
	case LINK_LEND:
		return take_lend(r, message->size);
	case LINK_PART:
		return take_part(r, message, data, size);
	case LINK_VALUE:
		return take_value(r, data, size);
	case LINK_FINISH:
		return take_finish(r, message->size);
	case LINK_FAIL:
		return take_fail(r, message, data, size);
	case LINK_ABANDON:
		return abandon(r);
	case LINK_NEXT:
		return take_next(r);
	case LINK_READ:
		if (r->answered)
			serve_read(r->request, message->size);
		return r->answered;
	default:
		return false;
	}
}

/* A message about a request that there is. */
static bool take_known(struct remote *remote, const struct link_message *message, const char *data,
                       size_t size)
{
	gint64 number = (gint64)message->number;
	struct remote_request *r = g_hash_table_lookup(remote->requests, &number);

	if (!r)
		return false;
	if (message->type == LINK_END)
		return g_hash_table_remove(remote->requests, &number);
	if (!take_request(r, message, data, size))
		return false;
	go_on(r);
	return true;
}

/* *fd: -1 if it has been taken over. */
static bool take(struct remote *remote, const struct link_message *message, const char *data,
                 size_t size, int *fd)
{
	switch ((enum link_type)message->type) {
	case LINK_GUEST:
		return take_guest(remote, message);
	case LINK_NAME:
	case LINK_GUEST_END:
		return take_guest_message(remote, message, data, size);
	case LINK_HEAD:
	case LINK_WHOLE:
		return take_head(remote, message, data, size, fd);
	case LINK_REFUSAL:
		return take_refusal(remote, message, data, size);
	case LINK_LOAD:
		remote->drained = message->flags & LINK_IS_LAST;
		return true;
	case LINK_PONG:
		remote->pinged = false;
		return true;
	default:
		return take_known(remote, message, data, size);
	}
}

static void take_message(void *context, const struct link_message *message, const char *data,
                         size_t size, int fd)
{
	struct remote *remote = context;

	if (!remote->broken && !take(remote, message, data, size, &fd))
		give_up(remote, link_name(message->type));
	if (fd >= 0)
		close(fd);
}

static void link_broken(void *context, const char *why)
{
	give_up(context, why);
	link_close(&((struct remote *)context)->link);
}

struct remote *remote_new(int socket, const struct remote_calls *c, void *context)
{
	static const struct link_owner owner = {take_message, link_broken};
	struct remote *remote = calloc(1, sizeof *remote);

	if (!remote) {
		close(socket);
		return NULL;
	}
	remote->calls = c;
	remote->context = context;
	if (link_open(&remote->link, socket, &owner, remote)) {
		free(remote);
		return NULL;
	}
	remote->requests = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, drop_request);
	remote->guests = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, drop_guest);
	return remote;
}

void remote_free(struct remote *remote)
{
	GHashTableIter all;
	gpointer r;

	if (!remote)
		return;
	remote->broken = true;
	g_hash_table_iter_init(&all, remote->requests);
	while (g_hash_table_iter_next(&all, NULL, &r))
		if (((struct remote_request *)r)->request)
			abandon(r);
	g_hash_table_destroy(remote->requests);
	g_hash_table_destroy(remote->guests);
	link_close(&remote->link);
	free(remote);
}

void remote_end(struct remote *remote)
{
	struct problem problem;
	GHashTableIter all;
	gpointer at;

	problem_set(&problem, ERR_DRAINING,
	            "the service is shutting down, and its drain time is over; send the request "
	            "again");
	g_hash_table_iter_init(&all, remote->requests);
	while (g_hash_table_iter_next(&all, NULL, &at)) {
		struct remote_request *r = at;

		if (!r->request)
			continue; /* what its worker has sent cannot be */
		if (!r->answered)
			serve_fail(r->request, ERR_DRAINING, &problem);
		wake(r);
	}
}

void remote_drain(struct remote *remote, bool last)
{
	send_message(remote, LINK_DRAIN, 0, 0, last ? LINK_IS_LAST : 0, NULL, 0, -1);
}

void remote_ping(struct remote *remote)
{
	remote->pinged = true;
	send_message(remote, LINK_PING, 0, 0, 0, NULL, 0, -1);
}

bool remote_is_pinged(const struct remote *remote)
{
	return remote->pinged;
}

unsigned remote_requests(const struct remote *remote)
{
	return g_hash_table_size(remote->requests);
}

bool remote_is_drained(const struct remote *remote)
{
	return remote->drained;
}
