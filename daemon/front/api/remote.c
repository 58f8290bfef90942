/* Requests of HTTP workers. Requests with pending work wait in a queue, from which clients take
 * turns by the time that they cost; mostly it is empty. While the link is full no client's turn
 * comes: answers and pieces of streams stay with their requests. So only small messages add to the
 * worker's unread ones, and a worker that lets too many of them gather is at fault. */
#include "front/api/remote.h"

#include <glib.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "front/api/request.h"
#include "front/api/routes.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/jobs/fair.h"
#include "front/jobs/shares.h"
#include "link/answer.h"
#include "link/link.h"
#include "wire/wire.h"

/* UNREAD_MAX: bytes; more than a FAIL for every connection that an honest worker can have. */
enum { UNREAD_MAX = 64 << 20 };

/* Nanoseconds, about what most answers take. */
static const double usual_cost = 20000;

struct remote {
	LIST_ENTRY(remote) place;
	struct link link;
	GHashTable *requests, *guests; /* by number */
	void (*on_broken)(void *context, const char *what);
	void *context;
	bool pinged; /* and has not answered */
	bool drained;
	bool broken;     /* nothing is read any more */
	struct fair due; /* requests for which something is to be done */
	bool is_held_up; /* there is no memory or descriptor for a message */
};

struct remote_request {
	uint64_t number; /* its key */
	struct remote *remote;
	struct request *request;
	struct remote_guest *guest; /* NULL: a refusal */
	uint64_t asked;             /* bytes for which room is wanted; 0: none */
	uint64_t lent;              /* bytes that have room */
	bool most;                  /* there will not be more */
	struct head_writer form;    /* its parameters so far */
	bool decided;               /* the worker has been told whether the body is wanted */
	bool finished, answered;
	const struct answer *answer; /* once it is complete */
	bool awaits_piece;
	size_t sent;           /* bytes of the stream's last piece */
	struct fair_flow flow; /* its client's */
	struct fair_item item;
};

/* A connection, which takes one of its client's places. */
struct remote_guest {
	uint64_t number; /* its key */
	struct remote *remote;
	struct share place;
	enum error error; /* why it has no place, and */
	struct problem problem;
	struct remote_request *request; /* a connection has one at a time */
};

static LIST_HEAD(remote_list, remote) remotes = LIST_HEAD_INITIALIZER(remotes);

/* The worker is to blame, or has gone. */
static void give_up(struct remote *remote, const char *what)
{
	if (remote->broken)
		return;
	remote->broken = true;
	remote->on_broken(remote->context, what);
}

static void tell(struct remote *remote, const struct link_message *message)
{
	if (remote->broken)
		return;
	if (!link_send(&remote->link, message))
		give_up(remote, NULL);
	else if (remote->link.queued > UNREAD_MAX)
		give_up(remote, "message: it does not read the answers");
}

/* Guests ------------------------------------------------------------------------------------- */

static void drop_guest(void *context)
{
	struct remote_guest *g = context;

	share_give_all(&g->place);
	free(g);
	metric_add(METRIC_CONNECTIONS, NULL, NULL, -1);
}

/* Ends a guest's request, if it has one. Returns false if that has no answer yet. */
static bool end_answered(struct remote_guest *g)
{
	if (!g->request)
		return true;
	return g->request->answered &&
	       g_hash_table_remove(g->remote->requests, &g->request->number);
}

static struct remote_guest *add_guest(struct remote *remote, uint64_t number)
{
	/* More than an honest worker has, since refused connections last a little longer. */
	const uint64_t most = 32768 + 2 * share_connections_most();
	struct remote_guest *g = NULL;

	if (g_hash_table_size(remote->guests) < most)
		g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	g->number = number;
	g->remote = remote;
	g_hash_table_insert(remote->guests, &g->number, g);
	metric_add(METRIC_CONNECTIONS, NULL, NULL, 1);
	return g;
}

/* A connection that there is may get another name. */
static bool receive_guest(struct remote *remote, struct remote_guest *g,
                          const struct link_message *message)
{
	const uint64_t most = share_connections_most(), own_most = config->max_client_connections;
	char name[HEAD_CLIENT_SIZE];
	uint64_t own;

	if (message->data_size >= sizeof name || (!g && !(g = add_guest(remote, message->number))))
		return false;
	if (!message->data_size)
		return true;
	memcpy(name, message->data, message->data_size + 1);
	wire_text(name, sizeof name);
	share_give_all(&g->place);
	own = share_of(SHARE_CONNECTIONS, name);
	/* A trusted proxy that has not named its client yet may use all places. */
	if (message->flags & LINK_IS_PROXY && share_total(SHARE_CONNECTIONS) < most)
		g->error = share_force(&g->place, SHARE_CONNECTIONS, name, 1)
		               ? no_memory(&g->problem, "for the connection")
		               : ERR_OK;
	else if (own >= own_most)
		g->error =
		    problem_set(&g->problem, ERR_QUEUE_FULL,
		                "this client has %" PRIu64 " of at most %" PRIu64 " connections",
		                own, own_most);
	else
		g->error = share_take(&g->place, SHARE_CONNECTIONS, name, 1, most, &g->problem);
	if (g->error)
		tell(remote, &(struct link_message){.type = LINK_FAIL,
		                                    .number = g->number,
		                                    .error = g->error,
		                                    .data = &g->problem,
		                                    .data_size = sizeof g->problem});
	return true;
}

/* Requests ----------------------------------------------------------------------------------- */

static void wake(void *context)
{
	struct remote_request *r = context;

	if (!r->flow.count)
		fair_push(&r->remote->due, &r->flow, &r->item);
}

static void cut(void *context)
{
	struct remote_request *r = context;

	tell(r->remote, &(struct link_message){.type = LINK_CUT, .number = r->number});
}

static bool is_answered(const struct remote_request *r)
{
	return r->request->answer.status;
}

/* Lends room for `size` bytes of the body if there is some. False if the worker cannot be told. */
static bool lend(struct remote_request *r, uint64_t size)
{
	struct link_message message = {
	    .type = LINK_ROOM, .flags = LINK_IS_WANTED | LINK_HAS_FILE, .number = r->number};
	struct problem problem;
	struct lent lent;
	enum error e = request_lend(r->request, size, &lent, &problem);

	if (e)
		routes_fail(r->request, e, &problem);
	if (e || lent.fd < 0)
		return true;
	message.room = lent.limit;
	message.fd = lent.fd;
	message.flags |= (lent.in_memory ? LINK_IS_IN_MEMORY : 0) | (lent.most ? LINK_IS_MOST : 0);
	if (!link_send(&r->remote->link, &message))
		return false;
	r->asked = 0;
	r->lent = lent.limit;
	r->most = lent.most;
	r->decided = true;
	return true;
}

static void send_piece(struct remote_request *r)
{
	struct answer *answer = &r->request->answer;
	bool more = true;
	size_t size;

	if (r->sent == answer->text_size) {
		answer_piece(answer, NULL, 0);
		r->sent = 0;
		more = r->request->stream(r->request);
	}
	if (more && !answer->text_size)
		return; /* it wakes the request */
	r->awaits_piece = false;
	size = more ? MIN(answer->text_size - r->sent, LINK_DATA_MAX) : 0;
	tell(r->remote, &(struct link_message){.type = LINK_PIECE,
	                                       .flags = more ? 0 : LINK_IS_LAST,
	                                       .number = r->number,
	                                       .data = size ? answer->text + r->sent : NULL,
	                                       .data_size = size});
	r->sent += size;
}

/* Does a request's pending work, and tells the worker. Returns false if it cannot be told now. */
static bool go_on(struct remote_request *r)
{
	uint64_t size = r->asked;

	if (r->answered) {
		if (r->awaits_piece)
			send_piece(r);
		return true;
	}
	/* A small body arrives soon; sending its room now saves the worker the question. */
	if (!size && !r->decided && r->request->head.announced <= LINK_WHOLE_MAX)
		size = r->request->head.announced;
	if (size && request_wants_body(r->request) && !lend(r, size))
		return false;
	if (!is_answered(r) && !request_wants_body(r->request))
		routes_resume(r->request);
	if (is_answered(r)) {
		if (!r->answer)
			r->answer = routes_answer(r->request);
		r->answered =
		    answer_send(&r->remote->link, r->number, r->answer, r->request->stream);
		return r->answered;
	}
	if (!r->decided && !r->finished)
		tell(r->remote, &(struct link_message){
		                    .type = LINK_ROOM,
		                    .flags = request_wants_body(r->request) ? LINK_IS_WANTED : 0,
		                    .number = r->number});
	r->decided = true;
	return true;
}

static bool is_due(const struct remote *remote)
{
	return remote->due.count && !remote->broken && !remote->is_held_up &&
	       !link_is_full(&remote->link);
}

bool remotes_turn(void)
{
	struct remote_request *r;
	struct remote *remote;
	uint64_t now, end, began;
	bool due = false;

	LIST_FOREACH(remote, &remotes, place) {
		now = loop_now();
		end = now + LINK_TURN_NS;
		link_flush(&remote->link);
		remote->is_held_up = false;
		while (is_due(remote) && now < end) {
			r = (struct remote_request *)((char *)fair_pop(&remote->due, 1) -
			                              offsetof(struct remote_request, item));
			began = now;
			remote->is_held_up = !go_on(r);
			if (remote->is_held_up)
				wake(r);
			now = loop_now();
			if ((double)(now - began) > usual_cost)
				fair_charge(&remote->due, &r->flow,
				            (double)(now - began) - usual_cost);
		}
	}
	/* One's request may wake another's. */
	LIST_FOREACH(remote, &remotes, place)
		due |= is_due(remote);
	return due;
}

/* Ends the work for an answer that nobody will read. */
static void abandon(struct remote_request *r)
{
	if (r->finished && !r->answered && !is_answered(r))
		routes_abandon(r->request);
}

/* Makes an error the answer, whatever answer is under way. */
static void fail(struct remote_request *r, enum error error, const struct problem *problem)
{
	abandon(r);
	if (!is_answered(r))
		routes_fail(r->request, error, problem);
}

static void drop_request(void *context)
{
	struct remote_request *r = context;

	fair_take_all(&r->remote->due, &r->flow);
	fair_close(&r->remote->due, &r->flow);
	if (r->guest)
		r->guest->request = NULL;
	if (r->request) {
		abandon(r);
		routes_close(r->request);
	}
	free(r->form.data);
	free(r);
}

/* A connection has one request at a time, and possibly a refusal after it. */
static struct remote_request *add_request(struct remote *remote, uint64_t number,
                                          const char *client)
{
	struct remote_request *r;

	if (g_hash_table_contains(remote->requests, &number) ||
	    g_hash_table_size(remote->requests) >= 2 * g_hash_table_size(remote->guests))
		return NULL;
	r = calloc(1, sizeof *r);
	if (!r || fair_open(&remote->due, &r->flow, 0, client, 1)) {
		free(r);
		return NULL;
	}
	r->item.cost = usual_cost;
	r->number = number;
	r->remote = remote;
	g_hash_table_insert(remote->requests, &r->number, r);
	return r;
}

/* The request is complete, with a body or without one. */
static void receive_whole(struct remote_request *r, struct link_message *message)
{
	enum error e = ERR_OK;
	struct problem problem;
	uint64_t size = 0;

	r->finished = true;
	if (is_answered(r))
		return;
	if (message->flags & LINK_HAS_FILE && message->fd < 0) {
		e = problem_set(&problem, ERR_MEMORY, "no file descriptor is left for the body");
	} else if (message->fd >= 0 && request_wants_body(r->request)) {
		size = message->announced;
		e = request_take(r->request, message->fd, size, &problem);
		message->fd = -1;
	}
	if (e)
		routes_fail(r->request, e, &problem);
	else
		routes_finish(r->request, size);
}

static bool receive_head(struct remote *remote, struct link_message *message)
{
	struct remote_guest *g = g_hash_table_lookup(remote->guests, &message->guest);
	const bool complete = message->flags & LINK_IS_COMPLETE;
	/* The announced body is there, or not there yet. */
	const bool valid = message->flags & LINK_HAS_FILE ? complete && message->announced &&
	                                                        message->announced <= LINK_WHOLE_MAX
	                                                  : !complete || !message->announced;
	struct remote_request *r = NULL;
	size_t size = message->data_size;
	char *block = g && valid && end_answered(g) ? malloc(size + 1) : NULL;
	struct head head;

	if (!block)
		return false;
	memcpy(block, message->data, size);
	if (!head_read(&head, block, size) && !head.mask) /* a form's comes later */
		r = add_request(remote, message->number,
		                head.text[HEAD_CLIENT] ? head.text[HEAD_CLIENT] : "");
	if (!r) {
		head_fini(&head);
		return false;
	}
	head.announced = message->announced;
	head.loopback = message->flags & LINK_IS_LOOPBACK;
	head.monitoring = message->flags & LINK_IS_MONITORING;
	head.form = message->flags & LINK_IS_FORM;
	r->guest = g;
	g->request = r;
	r->request = routes_open(&head, g->error, &g->problem, wake, cut, r);
	if (!r->request)
		return false;
	if (complete)
		receive_whole(r, message);
	wake(r);
	return true;
}

static bool receive_form(struct remote_request *r, const struct link_message *message)
{
	if (!r->request->head.form || r->finished ||
	    message->data_size > HEAD_FORM_MAX - r->form.size)
		return false;
	head_append(&r->form, message->data, message->data_size);
	if (r->form.failed)
		fail_with(routes_fail, r->request, ERR_MEMORY, "no memory for the parameters");
	return true;
}

static bool receive_finish(struct remote_request *r, uint64_t size)
{
	if (r->finished || size > r->lent)
		return false;
	if (r->form.size && !is_answered(r) &&
	    (head_read_form(&r->request->head, &r->form) || r->request->head.mask > size))
		return false;
	r->finished = true;
	r->asked = 0;
	if (!is_answered(r))
		routes_finish(r->request, size);
	return true;
}

static bool receive_lend(struct remote_request *r, uint64_t size)
{
	if (r->finished)
		return false;
	if (is_answered(r))
		return true;
	if (!request_wants_body(r->request) || r->asked || r->most || size <= r->lent)
		return false;
	r->asked = size;
	return true;
}

/* Handles the failure of an existing request or (NULL) of a client without one. */
static bool receive_fail(struct remote *remote, struct remote_request *r,
                         const struct link_message *message)
{
	const size_t size = message->data_size;
	enum error e = (enum error)message->error;
	struct problem problem;
	char name[HEAD_CLIENT_SIZE];

	if (e == ERR_OK || message->error >= ERR_COUNT || size < sizeof problem ||
	    size >= sizeof problem + sizeof name)
		return false;
	memcpy(&problem, message->data, sizeof problem);
	memcpy(name, (const char *)message->data + sizeof problem, size + 1 - sizeof problem);
	wire_text(problem.parameter, sizeof problem.parameter);
	wire_text(problem.value, sizeof problem.value);
	wire_text(problem.detail, sizeof problem.detail);
	wire_text(name, sizeof name);
	if (r) {
		fail(r, e, &problem);
	} else {
		r = add_request(remote, message->number, name);
		if (r)
			r->request = routes_refuse(name, e, &problem);
		if (!r || !r->request)
			return false;
		r->finished = true;
	}
	wake(r);
	return true;
}

/* False: the message cannot be. */
static bool receive(struct remote *remote, struct link_message *message)
{
	struct remote_guest *g = g_hash_table_lookup(remote->guests, &message->number);
	struct remote_request *r = g_hash_table_lookup(remote->requests, &message->number);
	bool valid = false;

	switch ((enum link_type)message->type) {
	case LINK_GUEST:
		return receive_guest(remote, g, message);
	case LINK_GUEST_END:
		return g && end_answered(g) &&
		       g_hash_table_remove(remote->guests, &message->number);
	case LINK_HEAD:
		return receive_head(remote, message);
	case LINK_FAIL:
		return receive_fail(remote, r, message);
	case LINK_PONG:
		remote->pinged = false;
		remote->drained |= message->flags & LINK_IS_LAST;
		return true;
	case LINK_END:
		return g_hash_table_remove(remote->requests, &message->number);
	case LINK_LEND:
		valid = r && receive_lend(r, message->room);
		break;
	case LINK_FORM:
		valid = r && receive_form(r, message);
		break;
	case LINK_FINISH:
		valid = r && receive_finish(r, message->bytes);
		break;
	case LINK_NEXT:
		valid = r && r->answered && r->request->stream && !r->awaits_piece;
		if (valid)
			r->awaits_piece = true;
		break;
	case LINK_READ:
		valid = r && r->answered;
		if (valid && r->request->unread.id)
			unread_report(&r->request->unread, message->bytes);
		break;
	default: /* it is the front's */
		break;
	}
	if (valid)
		wake(r);
	return valid;
}

static void receive_message(void *context, struct link_message *message)
{
	struct remote *remote = context;

	if (!remote->broken && !receive(remote, message))
		give_up(remote, link_name(message->type));
}

static void link_broken(void *context, const char *why)
{
	give_up(context, why);
	link_close(&((struct remote *)context)->link);
}

struct remote *remote_new(int socket, void (*broken)(void *context, const char *what),
                          void *context)
{
	static const struct link_owner owner = {.message = receive_message, .broken = link_broken};
	struct remote *remote = calloc(1, sizeof *remote);

	if (!remote) {
		close(socket);
		return NULL;
	}
	remote->on_broken = broken;
	remote->context = context;
	if (link_open(&remote->link, socket, &owner, remote)) {
		free(remote);
		return NULL;
	}
	fair_init(&remote->due, &(double){1}, 1);
	remote->requests = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, drop_request);
	remote->guests = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, drop_guest);
	LIST_INSERT_HEAD(&remotes, remote, place);
	return remote;
}

void remote_free(struct remote *remote)
{
	if (!remote)
		return;
	remote->broken = true;
	LIST_REMOVE(remote, place);
	g_hash_table_destroy(remote->requests);
	g_hash_table_destroy(remote->guests);
	link_close(&remote->link);
	free(remote);
}

void remote_drain(struct remote *remote, bool last)
{
	tell(remote, &(struct link_message){.type = LINK_DRAIN, .flags = last ? LINK_IS_LAST : 0});
}

bool remote_ping(struct remote *remote)
{
	if (remote->pinged)
		return false;
	remote->pinged = true;
	tell(remote, &(struct link_message){.type = LINK_PING});
	return true;
}

void remotes_end(void)
{
	struct problem problem;
	struct remote *remote;
	GHashTableIter all;
	gpointer at;

	problem_set(&problem, ERR_DRAINING,
	            "the service is shutting down, and its drain time is over; send the request "
	            "again");
	LIST_FOREACH(remote, &remotes, place) {
		g_hash_table_iter_init(&all, remote->requests);
		while (g_hash_table_iter_next(&all, NULL, &at)) {
			struct remote_request *r = at;

			if (!r->request)
				continue; /* the worker is at fault, or memory is short */
			fail(r, ERR_DRAINING, &problem);
			wake(r);
		}
	}
}

unsigned remotes_requests(void)
{
	struct remote *remote;
	unsigned requests = 0;

	LIST_FOREACH(remote, &remotes, place)
		requests += g_hash_table_size(remote->requests);
	return requests;
}

bool remotes_drained(void)
{
	struct remote *remote;
	bool drained = true;

	LIST_FOREACH(remote, &remotes, place)
		drained &= remote->drained;
	return drained && !remotes_requests();
}
