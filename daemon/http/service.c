/* Requests and guests of an HTTP worker. Each has a number of its own, never used again, so a
 * message that crosses the end of its request finds none. */
#include "http/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "base/errand.h"
#include "base/file.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/memfd.h"

enum { BUCKETS = 1024, QUIET_MS = 2, RETRY_MS = 100, SILENT_MS = 2000 };

LIST_HEAD(entry_list, service_entry);

static struct link front;
static void (*drain)(bool last);
static const struct connection_calls *connection;
static struct entry_list requests[BUCKETS], guests[BUCKETS];
static LIST_HEAD(guest_list, service_guest) quiet;
static LIST_HEAD(request_list, service_request) held; /* until the rest has come, or QUIET_MS */
static uint64_t quiet_since, held_since;              /* loop_now() */
static uint64_t heard;                                /* loop_now() of the front's last message */
static uint64_t last_number;

/* Without the front there is nothing to do, and nobody to tell. */
static noreturn void end(void)
{
	_exit(0);
}

static void tell(const struct link_message *message)
{
	if (!link_send(&front, message))
		end();
}

static void enter(struct entry_list *table, struct service_entry *entry)
{
	entry->number = ++last_number;
	LIST_INSERT_HEAD(&table[entry->number % BUCKETS], entry, place);
}

static void *find(const struct entry_list *table, uint64_t number)
{
	struct service_entry *entry;

	LIST_FOREACH(entry, &table[number % BUCKETS], place)
		if (entry->number == number)
			break;
	return entry;
}

/* Guests ------------------------------------------------------------------------------------- */

void service_guest_open(struct service_guest *g, void *context)
{
	*g = (struct service_guest){.context = context};
	enter(guests, &g->entry);
	tell(&(struct link_message){.type = LINK_GUEST, .number = g->entry.number});
}

void service_guest_name(struct service_guest *g, const char *client, bool proxy)
{
	tell(&(struct link_message){.type = LINK_GUEST,
	                            .flags = proxy ? LINK_IS_PROXY : 0,
	                            .number = g->entry.number,
	                            .data = client,
	                            .data_size = strlen(client)});
}

/* The front knows the end of the guest's last request, or learns of it with the next message. */
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
		tell(&(struct link_message){.type = LINK_END, .number = g->ended});
		forget_end(g);
	}
}

void service_guest_close(struct service_guest *g)
{
	forget_end(g);
	tell(&(struct link_message){.type = LINK_GUEST_END, .number = g->entry.number});
	LIST_REMOVE(&g->entry, place);
}

/* Bodies ------------------------------------------------------------------------------------- */

/* Data for a file collects in memory while an errand (a thread) writes earlier data. The loop does
 * not touch what the errand holds until that has finished. */
struct spill {
	/* must be first; it owns the members up to `failure` while it is under way */
	struct errand errand;
	int fd;
	uint64_t at; /* offset of the next data */
	struct head_writer writing;
	int failure; /* errno */

	struct head_writer waiting; /* to be written next */
};

/* Runs in the thread. */
static void spill_run(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;

	if (!file_write(s->fd, s->writing.data, s->writing.size, s->at))
		s->failure = errno;
	s->at += s->writing.size;
}

static void spill_send(struct spill *s)
{
	s->writing = s->waiting;
	s->waiting = (struct head_writer){0};
	errand_send(ERRAND_WRITE, &s->errand);
}

/* Runs in the loop again. */
static void spill_done(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;

	free(s->writing.data);
	s->writing = (struct head_writer){0};
	if (s->failure)
		log_error("a body cannot be written to its file: %s", strerror(s->failure));
	else if (s->waiting.size && !errand->abandoned)
		spill_send(s);
}

static void spill_free(struct errand *errand)
{
	struct spill *s = (struct spill *)errand;

	errand_close(s->fd);
	free(s->waiting.data);
	free(s);
}

static void close_body(struct service_request *r)
{
	if (r->spill)
		errand_abandon(&r->spill->errand);
	else if (r->lent.fd >= 0)
		errand_close(r->lent.fd);
	r->lent.fd = -1;
	r->spill = NULL;
}

/* Continues in a place with more room, and takes over its descriptor. The content before it must be
 * there, and not be under way to memory. */
static enum error move_body(struct service_request *r, const struct lent *lent,
                            struct problem *problem)
{
	struct spill *spill = NULL;

	if (r->lent.fd >= 0 && r->lent.in_memory == lent->in_memory) {
		close(lent->fd);
		r->lent.limit = lent->limit;
		r->lent.most = lent->most;
		return ERR_OK;
	}
	if (!lent->in_memory && !(spill = calloc(1, sizeof *spill))) {
		close(lent->fd);
		return problem_set(problem, ERR_MEMORY, "cannot keep the body");
	}
	close_body(r);
	if (spill) {
		spill->errand =
		    (struct errand){.run = spill_run, .done = spill_done, .free = spill_free};
		spill->fd = lent->fd; /* which is the spill's from now on */
		spill->at = r->body_size;
	}
	r->spill = spill;
	r->lent = *lent;
	return ERR_OK;
}

enum error service_write(struct service_request *r, const char *data, size_t size,
                         struct problem *problem)
{
	struct spill *s = r->spill;
	enum error e = ERR_OK;

	if (size > r->lent.limit - r->body_size)
		return problem_set(problem, ERR_BODY_TOO_LARGE,
		                   "a body has at most %" PRIu64 " bytes", r->lent.limit);
	if (s ? !s->errand.under_way && s->failure
	      : !file_write(r->lent.fd, data, size, r->body_size))
		e = ERR_IO;
	if (!e && s) {
		head_append(&s->waiting, data, size);
		e = s->waiting.failed ? ERR_MEMORY : ERR_OK;
	}
	if (e)
		return problem_set(problem, e, "cannot keep the body");
	if (s && !s->errand.under_way)
		spill_send(s);
	r->body_size += size;
	return ERR_OK;
}

bool service_writes(struct service_request *r)
{
	return r->spill && errand_await(&r->spill->errand, connection->wake, r->context);
}

/* Requests ----------------------------------------------------------------------------------- */

static void begin(struct service_request *r, void *context)
{
	enter(requests, &r->entry);
	r->context = context;
	r->lent.fd = -1;
	answer_init(&r->answer);
}

/* Tells the front about a request that was held back so that one message could suffice. fd: its
 * body, or -1. Returns false if the body could not be sent. */
static bool tell_head(struct service_request *r, uint32_t flags, int fd)
{
	struct link_message message = {.type = LINK_HEAD,
	                               .flags = flags,
	                               .number = r->entry.number,
	                               .guest = r->guest->entry.number,
	                               .announced = r->head.announced,
	                               .data = r->head.data,
	                               .data_size = r->head.size,
	                               .fd = fd};

	r->held = false;
	LIST_REMOVE(r, hold);
	forget_end(r->guest);
	tell_ends(); /* in order of time: before this request */
	message.flags |= r->head.loopback ? LINK_IS_LOOPBACK : 0;
	message.flags |= r->head.monitoring ? LINK_IS_MONITORING : 0;
	message.flags |= r->head.form ? LINK_IS_FORM : 0;
	if (fd >= 0) {
		message.flags |= LINK_IS_COMPLETE | LINK_HAS_FILE;
		if (link_send(&front, &message))
			return true;
		message.flags ^= LINK_IS_COMPLETE | LINK_HAS_FILE;
	}
	tell(&message);
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

bool service_begin(struct service_request *r, struct service_guest *guest, void *context)
{
	if (r->head.size > LINK_DATA_MAX)
		return false;
	begin(r, context);
	r->guest = guest;
	if (LIST_EMPTY(&held))
		held_since = loop_now();
	r->held = true;
	LIST_INSERT_HEAD(&held, r, hold);
	if (r->head.announced > LINK_WHOLE_MAX || (r->head.announced && r->head.form))
		service_decide(r);
	return true;
}

/* client: its name if the front does not know it, or "". */
static void tell_failure(struct service_request *r, const char *client, enum error error,
                         const struct problem *problem)
{
	char data[sizeof *problem + HEAD_CLIENT_SIZE];

	memcpy(data, problem, sizeof *problem);
	memcpy(data + sizeof *problem, client, strlen(client));
	r->failed = true;
	tell(&(struct link_message){.type = LINK_FAIL,
	                            .number = r->entry.number,
	                            .error = error,
	                            .data = data,
	                            .data_size = sizeof *problem + strlen(client)});
}

void service_refuse(struct service_request *r, const char *client, enum error error,
                    const struct problem *problem, void *context)
{
	begin(r, context);
	tell_failure(r, client, error, problem);
}

void service_end(struct service_request *r)
{
	struct service_guest *g = r->guest;

	if (r->held) {
		LIST_REMOVE(r, hold);
	} else if (r->answered && g) {
		/* Usually the client's next request follows at once; its head tells this, too. */
		g->ended = r->entry.number;
		if (LIST_EMPTY(&quiet))
			quiet_since = loop_now();
		LIST_INSERT_HEAD(&quiet, g, quiet);
	} else if (r->entry.number) {
		tell(&(struct link_message){.type = LINK_END, .number = r->entry.number});
	}
	if (r->entry.number) {
		LIST_REMOVE(&r->entry, place);
		close_body(r);
		file_close(&r->answer.file);
		answer_fini(&r->answer);
	}
	head_fini(&r->head);
	*r = (struct service_request){0};
}

bool service_wants_body(const struct service_request *r)
{
	return !r->failed && !r->answered && (r->wanted || !r->decided);
}

bool service_has_room(struct service_request *r, uint64_t size)
{
	if (!r->decided || !service_wants_body(r))
		return false;
	if (r->lent.most || size <= r->lent.limit)
		return true;
	if (!r->asked)
		tell(&(struct link_message){
		    .type = LINK_LEND, .number = r->entry.number, .room = size});
	r->asked = true;
	return false;
}

void service_finish(struct service_request *r, const struct head_writer *form)
{
	size_t left;

	if (r->spill ? r->spill->failure : r->lent.fd >= 0 && !memfd_seal(r->lent.fd))
		fail_with(service_fail, r, ERR_IO, "cannot keep the body");
	close_body(r);
	if (r->held) {
		tell_head(r, LINK_IS_COMPLETE, -1);
	} else if (!r->failed && !r->answered) {
		for (size_t at = 0; (left = form->size - at); at += left) {
			left = MIN(left, LINK_DATA_MAX);
			tell(&(struct link_message){.type = LINK_FORM,
			                            .number = r->entry.number,
			                            .data = form->data + at,
			                            .data_size = left});
		}
		tell(&(struct link_message){
		    .type = LINK_FINISH, .number = r->entry.number, .bytes = r->body_size});
	}
}

bool service_take(struct service_request *r, int fd, uint64_t size)
{
	return r->held && size == r->head.announced && !link_is_full(&front) && tell_head(r, 0, fd);
}

void service_fail(struct service_request *r, enum error error, const struct problem *problem)
{
	if (r->failed || r->answered)
		return;
	close_body(r);
	service_decide(r);
	tell_failure(r, "", error, problem);
}

void service_read(const struct service_request *r, uint64_t bytes)
{
	if (r->answer.file >= 0 && !link_is_full(&front))
		tell(&(struct link_message){
		    .type = LINK_READ, .number = r->entry.number, .bytes = bytes});
}

bool service_piece(struct service_request *r)
{
	if (r->awaits_piece)
		return true;
	answer_piece(&r->answer, NULL, 0);
	if (r->ended)
		return false;
	r->awaits_piece = true;
	tell(&(struct link_message){.type = LINK_NEXT, .number = r->entry.number});
	return true;
}

/* Messages ----------------------------------------------------------------------------------- */

/* Returns true for a message whose file has not come, because no descriptor was left for it. */
static bool lacks_file(const struct link_message *message)
{
	return message->flags & LINK_HAS_FILE && message->fd < 0;
}

static void receive_room(struct service_request *r, struct link_message *message)
{
	const struct lent lent = {.fd = message->fd,
	                          .in_memory = message->flags & LINK_IS_IN_MEMORY,
	                          .limit = message->room,
	                          .most = message->flags & LINK_IS_MOST};
	struct problem problem;
	enum error e = ERR_OK;

	if (!service_wants_body(r))
		return;
	if (lacks_file(message)) {
		e = problem_set(&problem, ERR_MEMORY, "no file descriptor is left for the body");
	} else {
		r->decided = true;
		r->wanted = message->flags & LINK_IS_WANTED;
	}
	if (message->fd >= 0) {
		message->fd = -1;
		r->asked = false;
		e = move_body(r, &lent, &problem);
	}
	if (e)
		service_fail(r, e, &problem);
}

static void receive_answer(struct service_request *r, struct link_message *message)
{
	if (lacks_file(message)) {
		connection->cut(r->context);
		return;
	}
	if (answer_read(&r->answer, message))
		end();
	message->fd = -1;
	close_body(r);
	r->decided = r->answered = true;
	r->streams = message->flags & LINK_IS_STREAM;
}

static void receive_request(struct service_request *r, struct link_message *message)
{
	char *piece;

	switch ((enum link_type)message->type) {
	case LINK_ROOM:
		receive_room(r, message);
		break;
	case LINK_ANSWER:
		receive_answer(r, message);
		break;
	case LINK_PIECE:
		if (!r->awaits_piece)
			break;
		piece = message->data_size ? malloc(message->data_size) : NULL;
		if (piece)
			memcpy(piece, message->data, message->data_size);
		answer_piece(&r->answer, piece, message->data_size);
		r->awaits_piece = false;
		r->ended = message->flags & LINK_IS_LAST || !piece;
		break;
	case LINK_CUT:
		connection->cut(r->context);
		return;
	default:
		end();
	}
	connection->wake(r->context);
}

static void receive_message(void *, struct link_message *message)
{
	struct service_guest *g;
	struct service_request *r;
	struct problem problem;

	heard = loop_now();
	if (message->type == LINK_PING) {
		tell(&(struct link_message){.type = LINK_PONG});
	} else if (message->type == LINK_DRAIN) {
		drain(message->flags & LINK_IS_LAST);
	} else if (message->type == LINK_FAIL) {
		g = find(guests, message->number);
		if (!g || message->data_size != sizeof problem)
			return;
		memcpy(&problem, message->data, sizeof problem);
		connection->crowded(g->context, (enum error)message->error, &problem);
	} else if ((r = find(requests, message->number))) {
		receive_request(r, message);
	}
}

static void front_lost(void *, const char *why)
{
	if (why)
		log_error("the front sent an invalid %s", why);
	end();
}

enum error service_init(int socket, const struct connection_calls *calls,
                        void (*on_drain)(bool last))
{
	static const struct link_owner owner = {.message = receive_message, .broken = front_lost};

	connection = calls;
	drain = on_drain;
	heard = loop_now();
	return link_open(&front, socket, &owner, NULL);
}

bool service_speaks(void)
{
	return !service_is_full() && loop_now() - heard < SILENT_MS * UINT64_C(1000000);
}

void service_drained(void)
{
	tell(&(struct link_message){.type = LINK_PONG, .flags = LINK_IS_LAST});
}
