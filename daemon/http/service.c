/* Requests and guests of an HTTP worker. Each has a number, by which both sides know it, and which
 * is not given again: a message of the front that crosses the end of its request finds none. */
#include "http/service.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/log.h"
#include "base/loop.h"

enum { BUCKETS = 1024, QUIET_MS = 2, RETRY_MS = 100, SILENT_MS = 2000 };

struct service_guest {
	LIST_ENTRY(service_guest) place;
	uint64_t number;
	uint64_t ended; /* its last request, of whose end the front does not know; 0: none */
	LIST_ENTRY(service_guest) quiet; /* in the list of those, while there is one */
	service_crowded *crowded;
	void *context;
};

LIST_HEAD(request_list, service_request);
LIST_HEAD(guest_list, service_guest);

static struct link front;
static const struct service_calls *calls;
static struct request_list requests[BUCKETS];
static struct guest_list guests[BUCKETS];
static struct guest_list quiet;
static struct request_list held;         /* until the rest has come, or for QUIET_MS */
static uint64_t quiet_since, held_since; /* loop_now() */
static uint64_t heard;                   /* loop_now() of the front's last message */
static uint64_t last_number;

static void send_message(const struct link_message *message, const void *data, size_t size)
{
	if (!link_send(&front, message, data, size, -1))
		calls->lost();
}

static void send_data(enum link_type type, uint64_t number, uint64_t size, uint32_t flags,
                      const void *data, size_t data_size)
{
	struct link_message message = {
	    .type = type, .flags = flags, .number = number, .size = size};

	send_message(&message, data, data_size);
}

static void send_size(enum link_type type, uint64_t number, uint64_t size)
{
	send_data(type, number, size, 0, NULL, 0);
}

static struct service_request *find_request(uint64_t number)
{
	struct service_request *r;

	LIST_FOREACH(r, &requests[number % BUCKETS], place)
	{
		if (r->number == number)
			return r;
	}
	return NULL;
}

static struct service_guest *find_guest(uint64_t number)
{
	struct service_guest *g;

	LIST_FOREACH(g, &guests[number % BUCKETS], place)
	{
		if (g->number == number)
			return g;
	}
	return NULL;
}

/* Guests ------------------------------------------------------------------------------------- */

struct service_guest *service_guest_new(service_crowded *crowded, void *context)
{
	struct service_guest *g = calloc(1, sizeof *g);

	if (!g)
		return NULL;
	g->number = ++last_number;
	g->crowded = crowded;
	g->context = context;
	LIST_INSERT_HEAD(&guests[g->number % BUCKETS], g, place);
	send_size(LINK_GUEST, g->number, 0);
	return g;
}

void service_guest_name(struct service_guest *g, const char *client, bool proxy)
{
	send_data(LINK_NAME, g->number, 0, proxy ? LINK_IS_PROXY : 0, client, strlen(client));
}

/* The front knows of the end of its last request, or gets to know by the next message. */
static void forget_end(struct service_guest *g)
{
	if (g->ended)
		LIST_REMOVE(g, quiet);
	g->ended = 0;
}

static void tell_ends(void)
{
	struct service_guest *g;

	while ((g = LIST_FIRST(&quiet))) {
		send_size(LINK_END, g->ended, 0);
		forget_end(g);
	}
}

void service_guest_free(struct service_guest *g)
{
	if (!g)
		return;
	forget_end(g);
	send_size(LINK_GUEST_END, g->number, 0);
	LIST_REMOVE(g, place);
	free(g);
}

/* Requests ----------------------------------------------------------------------------------- */

static struct service_request *make(const struct request_calls *c, void *context)
{
	struct service_request *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->number = ++last_number;
	r->calls = c;
	r->context = context;
	r->lent.fd = -1;
	answer_init(&r->answer);
	LIST_INSERT_HEAD(&requests[r->number % BUCKETS], r, place);
	return r;
}

/* Tells the front of a request that was held back: mostly the rest of it comes soon, and one
 * message then tells of all. fd: its body, or -1. False: the body could not be sent. */
static bool tell_head(struct service_request *r, uint32_t flags, int fd)
{
	struct service_guest *g = find_guest(r->guest);
	struct link_message message = {.type = LINK_WHOLE,
	                               .flags = flags,
	                               .number = r->number,
	                               .size = r->head.announced,
	                               .guest = r->guest};

	r->held = false;
	LIST_REMOVE(r, hold);
	if (g)
		forget_end(g);
	tell_ends(); /* what it is told is not older than this request */
	message.flags |= r->head.loopback ? LINK_IS_LOOPBACK : 0;
	message.flags |= r->head.monitoring ? LINK_IS_MONITORING : 0;
	message.flags |= r->head.form ? LINK_IS_FORM : 0;
	if (fd >= 0 && link_send(&front, &message, r->head.data, r->head.size, fd))
		return true;
	message.type = LINK_HEAD;
	send_message(&message, r->head.data, r->head.size);
	return false;
}

static bool is_over(uint64_t since)
{
	return loop_now() - since > QUIET_MS * UINT64_C(1000000);
}

int service_turn(void)
{
	link_flush(&front);
	while (!LIST_EMPTY(&held) && is_over(held_since))
		tell_head(LIST_FIRST(&held), 0, -1);
	if (!LIST_EMPTY(&quiet) && is_over(quiet_since))
		tell_ends();
	if (!LIST_EMPTY(&quiet) || !LIST_EMPTY(&held))
		return QUIET_MS;
	return front.queued ? RETRY_MS : -1;
}

bool service_is_full(void)
{
	return link_is_full(&front);
}

void service_decide(struct service_request *r)
{
	if (r->held)
		tell_head(r, 0, -1);
}

struct service_request *service_begin(const struct service_guest *guest, struct head *head,
                                      const struct request_calls *c, void *context)
{
	struct service_request *r = head->size <= LINK_DATA_MAX ? make(c, context) : NULL;

	if (!r) {
		head_fini(head);
		return NULL;
	}
	r->guest = guest->number;
	r->head = *head;
	*head = (struct head){0};
	if (LIST_EMPTY(&held))
		held_since = loop_now();
	r->held = true;
	LIST_INSERT_HEAD(&held, r, hold);
	if (r->head.announced > LINK_WHOLE_MAX || (r->head.announced && r->head.form))
		service_decide(r);
	return r;
}

struct service_request *service_refuse(const char *client, enum error error,
                                       const struct problem *problem, const struct request_calls *c,
                                       void *context)
{
	char data[sizeof *problem + LINK_NAME_SIZE];
	struct service_request *r = make(c, context);

	if (!r)
		return NULL;
	memcpy(data, problem, sizeof *problem);
	memcpy(data + sizeof *problem, client, strlen(client));
	r->failed = true;
	send_data(LINK_REFUSAL, r->number, error, 0, data, sizeof *problem + strlen(client));
	return r;
}

/* Nothing is written to the body any more: its memory or file goes when the front drops it. */
static void give_back(struct service_request *r)
{
	if (r->lent.fd >= 0)
		close(r->lent.fd);
	r->lent = (struct lent){.fd = -1};
}

/* Mostly the same client's next request follows at once, and then its head says this, too. */
static void tell_end(struct service_request *r)
{
	struct service_guest *g = r->answered && r->guest ? find_guest(r->guest) : NULL;

	if (!g) {
		send_size(LINK_END, r->number, 0);
		return;
	}
	g->ended = r->number;
	if (LIST_EMPTY(&quiet))
		quiet_since = loop_now();
	LIST_INSERT_HEAD(&quiet, g, quiet);
}

void service_end(struct service_request *r)
{
	if (r->held)
		LIST_REMOVE(r, hold);
	else
		tell_end(r);
	LIST_REMOVE(r, place);
	give_back(r);
	if (r->answer.file >= 0)
		close(r->answer.file);
	answer_fini(&r->answer);
	free(r->kept);
	free(r->piece);
	head_fini(&r->head);
	free(r);
}

bool service_wants_body(const struct service_request *r)
{
	return !r->failed && !r->answered && (r->wanted || !r->decided);
}

bool service_lend(struct service_request *r, uint64_t size, struct lent *lent)
{
	*lent = r->lent;
	if (r->lent.fd >= 0 && (r->lent.most || r->lent.limit >= size))
		return true;
	if (!r->asked)
		send_size(LINK_LEND, r->number, size);
	r->asked = true;
	return false;
}

void service_part(const struct service_request *r, const char *name, bool file)
{
	send_data(LINK_PART, r->number, 0, file ? LINK_IS_FILE : 0, name, strlen(name));
}

void service_value(const struct service_request *r, const char *data, size_t size)
{
	send_data(LINK_VALUE, r->number, 0, 0, data, size);
}

void service_finish(struct service_request *r, uint64_t size)
{
	give_back(r);
	if (r->held)
		tell_head(r, LINK_IS_COMPLETE, -1);
	else if (!r->failed && !r->answered)
		send_size(LINK_FINISH, r->number, size);
}

bool service_take(struct service_request *r, int fd, uint64_t size)
{
	if (!r->held || size != r->head.announced || link_is_full(&front) || !tell_head(r, 0, fd))
		return false;
	close(fd);
	return true;
}

void service_fail(struct service_request *r, enum error error, const struct problem *problem)
{
	if (r->failed || r->answered)
		return;
	give_back(r);
	r->failed = true;
	service_decide(r);
	send_data(LINK_FAIL, r->number, error, 0, problem, sizeof *problem);
}

void service_abandon(const struct service_request *r)
{
	if (!r->answered && !r->held)
		send_size(LINK_ABANDON, r->number, 0);
}

void service_read(const struct service_request *r, uint64_t bytes)
{
	if (r->answer.file >= 0 && !link_is_full(&front))
		send_size(LINK_READ, r->number, bytes);
}

const struct answer *service_piece(struct service_request *r)
{
	answer_piece(&r->answer, r->piece, r->piece_size);
	r->piece = NULL;
	r->piece_size = 0;
	if (r->ended && !r->answer.text)
		return NULL;
	if (!r->answer.text && !r->awaits_piece) {
		r->awaits_piece = true;
		send_size(LINK_NEXT, r->number, 0);
	}
	return &r->answer;
}

/* Messages ----------------------------------------------------------------------------------- */

static void take_crowded(const struct link_message *message, const char *data, size_t size)
{
	struct service_guest *g = find_guest(message->number);
	struct problem problem;

	if (!g || size != sizeof problem)
		return;
	memcpy(&problem, data, sizeof problem);
	g->crowded(g->context, (enum error)message->size, &problem);
}

static void take_room(struct service_request *r, const struct link_message *message, int fd)
{
	struct problem problem;

	give_back(r);
	if (fd < 0) {
		problem_set(&problem, ERR_MEMORY, "no file descriptor is left for the body");
		service_fail(r, ERR_MEMORY, &problem);
		return;
	}
	if (!service_wants_body(r)) {
		close(fd);
		return;
	}
	r->lent = (struct lent){.fd = fd,
	                        .in_memory = message->flags & LINK_IS_IN_MEMORY,
	                        .limit = message->size,
	                        .most = message->flags & LINK_IS_MOST};
	r->asked = false;
	r->decided = r->wanted = true;
}

static void take_answer(struct service_request *r, const struct link_message *message,
                        const char *data, size_t size, int fd)
{
	if (message->type == LINK_ANSWER_FILE && fd < 0) { /* no descriptor is left for it */
		r->calls->cut(r->context);
		return;
	}
	if (answer_read(&r->answer, &r->kept, message, data, size, fd)) {
		calls->lost();
		return;
	}
	give_back(r);
	r->decided = r->answered = true;
	r->streams = message->flags & LINK_IS_STREAM;
}

static void take_piece(struct service_request *r, const struct link_message *message,
                       const char *data, size_t size)
{
	r->awaits_piece = false;
	r->ended = message->flags & LINK_IS_LAST;
	r->piece = size ? malloc(size) : NULL;
	r->piece_size = r->piece ? size : 0;
	if (r->piece)
		memcpy(r->piece, data, size);
	else
		r->ended = true;
}

/* A message about a request. */
static void take_request(struct service_request *r, const struct link_message *message,
                         const char *data, size_t size, int fd)
{
	switch ((enum link_type)message->type) {
	case LINK_DECIDED:
		r->decided = true;
		r->wanted = message->flags & LINK_IS_WANTED;
		break;
	case LINK_ROOM:
		take_room(r, message, fd);
		break;
	case LINK_ANSWER:
	case LINK_ANSWER_FILE:
		take_answer(r, message, data, size, fd);
		break;
	case LINK_PIECE:
		take_piece(r, message, data, size);
		break;
	case LINK_CUT:
		r->calls->cut(r->context);
		return;
	default:
		calls->lost();
		return;
	}
	r->calls->wake(r->context);
}

static void take_message(void *context, const struct link_message *message, const char *data,
                         size_t size, int fd)
{
	struct service_request *r;

	(void)context;
	heard = loop_now();
	if (message->type == LINK_PING) {
		send_size(LINK_PONG, message->number, 0);
	} else if (message->type == LINK_DRAIN) {
		calls->drain(message->flags & LINK_IS_LAST);
	} else if (message->type == LINK_CROWDED) {
		take_crowded(message, data, size);
	} else if ((r = find_request(message->number))) {
		take_request(r, message, data, size, fd);
	} else if (fd >= 0) {
		close(fd);
	}
}

static void front_lost(void *context, const char *why)
{
	(void)context;
	if (why)
		log_error("the front sent an invalid %s", why);
	calls->lost();
}

enum error service_init(int socket, const struct service_calls *c)
{
	static const struct link_owner owner = {take_message, front_lost};

	calls = c;
	heard = loop_now();
	return link_open(&front, socket, &owner, NULL);
}

bool service_speaks(void)
{
	return !service_is_full() && loop_now() - heard < SILENT_MS * UINT64_C(1000000);
}

void service_report(unsigned count, bool drained)
{
	send_data(LINK_LOAD, 0, count, drained ? LINK_IS_LAST : 0, NULL, 0);
}
