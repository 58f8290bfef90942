/* HTTP before a service that says everything late, as one in another process would: whether it
 * wants a body, that an error is the answer, and the answer. Usage: late SOCKET MILLISECONDS.
 *
 *   /wait     answers when the request is complete
 *   /echo     wants the body, and answers with it; of a form, with the image
 *   others    404
 *
 * It takes a body of an even size with the request, if it has come in one piece. Of the PROXY
 * protocol it believes everybody. The client 192.0.2.9 has no place. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/errand.h"
#include "base/loop.h"
#include "common/log.h"
#include "http/http.h"
#include "link/serve.h"

enum { ROOM = 1 << 20 };

struct request {
	struct head head;
	const struct serve_calls *calls;
	void *context;
	struct loop_timer late; /* until what follows is so */
	enum { BEGUN, DECIDED, COMPLETE, ANSWERED } will_be, is;
	enum error error;
	bool echoes, failed;
	int body;
	uint64_t size;
	struct answer answer;
};

static uint64_t delay;
static unsigned requests;

static void become(struct request *r, int state)
{
	if ((int)r->will_be >= state)
		return;
	r->will_be = (__typeof__(r->will_be))state;
	if (!loop_timer_left(&r->late))
		loop_timer_start(&r->late, delay);
}

static void fail(struct request *r, enum error error)
{
	r->error = r->error ? r->error : error;
	r->failed = true;
	become(r, ANSWERED);
}

static void answer(struct request *r)
{
	char *text = strdup(r->error ? error_slug(r->error) : "answer\n");

	r->answer.status = r->error ? error_status(r->error) : 200;
	r->answer.content_type = "text/plain";
	answer_piece(&r->answer, text, strlen(text));
	if (r->error || !r->echoes)
		return;
	answer_piece(&r->answer, NULL, 0);
	r->answer.file = r->body;
	r->answer.file_size = r->size;
}

static void due(void *context)
{
	struct request *r = context;

	r->is = r->will_be;
	if (r->is == ANSWERED)
		answer(r);
	r->calls->wake(r->context);
}

static struct request *make(const struct serve_calls *calls, void *context)
{
	struct request *r = calloc(1, sizeof *r);

	if (!r || loop_timer_init(&r->late, due, r))
		abort();
	r->calls = calls;
	r->context = context;
	r->body = -1;
	answer_init(&r->answer);
	requests++;
	return r;
}

struct request *serve_begin(struct guest *guest, struct head *head, const struct serve_calls *calls,
                            void *context)
{
	struct request *r = make(calls, context);
	const char *path = head->text[HEAD_PATH];

	(void)guest; /* its refusal comes later than this */
	r->head = *head;
	*head = (struct head){0};
	r->echoes = !strcmp(path, "/echo");
	if (!r->echoes && strcmp(path, "/wait")) {
		r->error = ERR_NOT_FOUND;
		become(r, ANSWERED);
	} else {
		become(r, DECIDED);
	}
	return r;
}

struct request *serve_refuse(const char *client, enum error error, const struct problem *problem,
                             const struct serve_calls *calls, void *context)
{
	struct request *r = make(calls, context);

	(void)client, (void)problem;
	fail(r, error);
	return r;
}

void serve_end(struct request *r)
{
	loop_timer_fini(&r->late);
	answer_fini(&r->answer);
	if (r->body >= 0)
		close(r->body);
	head_fini(&r->head);
	free(r);
	requests--;
}

const struct head *serve_head(const struct request *r)
{
	return &r->head;
}

bool serve_is_decided(const struct request *r)
{
	return r->is >= DECIDED;
}

bool serve_is_answered(const struct request *r)
{
	return r->is == ANSWERED;
}

bool serve_wants_body(const struct request *r)
{
	return !r->failed && r->is < COMPLETE && (r->echoes || r->is == BEGUN);
}

bool serve_lend(struct request *r, uint64_t size, struct lent *lent)
{
	if (r->is < DECIDED) /* it must not ask */
		abort();
	if (size > ROOM)
		fail(r, ERR_BODY_TOO_LARGE);
	if (size > ROOM)
		return false;
	if (r->body < 0)
		r->body = memfd_create("body", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	*lent = (struct lent){r->body, true, ROOM, true};
	return true;
}

enum error serve_part(struct request *r, const char *name, bool file, bool *image,
                      struct problem *problem)
{
	(void)r, (void)file, (void)problem;
	*image = !strcmp(name, "image");
	return ERR_OK;
}

enum error serve_value(struct request *r, const char *data, size_t size, struct problem *problem)
{
	(void)r, (void)data, (void)size, (void)problem;
	return ERR_OK;
}

void serve_finish(struct request *r, uint64_t size)
{
	if (r->is < DECIDED && r->head.announced)
		abort();
	r->size = size;
	become(r, ANSWERED);
}

bool serve_take(struct request *r, int fd, uint64_t size)
{
	if (size != r->head.announced || !serve_wants_body(r) || r->is >= DECIDED)
		abort();
	if (size % 2)
		return false;
	r->body = fd;
	r->size = size;
	become(r, ANSWERED);
	return true;
}

void serve_decide(struct request *r)
{
	(void)r;
}

void serve_look(struct request *r)
{
	(void)r;
}

void serve_fail(struct request *r, enum error error, const struct problem *problem)
{
	(void)problem;
	fail(r, error);
}

void serve_abandon(struct request *r)
{
	(void)r;
}

const struct answer *serve_answer(struct request *r)
{
	return &r->answer;
}

bool serve_streams(const struct request *r)
{
	(void)r;
	return false;
}

const struct answer *serve_piece(struct request *r)
{
	(void)r;
	return NULL;
}

void serve_read(struct request *r, uint64_t bytes)
{
	(void)r, (void)bytes;
}

struct guest {
	struct loop_timer late;
	guest_refuse *refuse;
	void *context;
};

static void refuse(void *context)
{
	struct guest *guest = context;
	struct problem problem;

	guest->refuse(guest->context, problem_set(&problem, ERR_QUEUE_FULL, "no place"), &problem);
}

struct guest *guest_new(guest_refuse *tell, void *context)
{
	struct guest *guest = calloc(1, sizeof *guest);

	if (!guest || loop_timer_init(&guest->late, refuse, guest))
		abort();
	guest->refuse = tell;
	guest->context = context;
	return guest;
}

void guest_name(struct guest *guest, const char *client, bool proxy)
{
	(void)proxy;
	if (!strcmp(client, "192.0.2.9"))
		loop_timer_start(&guest->late, delay);
}

void guest_free(struct guest *guest)
{
	if (!guest)
		return;
	loop_timer_fini(&guest->late);
	free(guest);
}

static struct loop_watch signals;

static struct loop_timer look;

static void stop_when_done(void *context)
{
	(void)context;
	if (http_drained())
		loop_stop();
	else
		loop_timer_start(&look, 1);
}

static void drain(void *context)
{
	loop_unwatch(&signals);
	http_drain(true);
	stop_when_done(context);
}

/* A socket that listens at a path, or -1. */
static int listening(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	return bind(fd, (const struct sockaddr *)&at, sizeof at) || listen(fd, 100) ? -1 : fd;
}

static bool serves(void)
{
	return true;
}

static int turn(void)
{
	return http_turn(false);
}

int main(int argc, char **argv)
{
	static const struct limits limits = {.idle_timeout = 60,
	                                     .header_timeout = 10,
	                                     .body_timeout = 60,
	                                     .keepalive_timeout = 60,
	                                     .spool_size = ROOM,
	                                     .trusted_proxies.unix_sockets = 1};
	sigset_t set;

	if (argc != 3)
		return 2;
	log_init("late", LOG_LEVEL_DEBUG, LOG_FORMAT_AUTO);
	delay = strtoull(argv[2], NULL, 10);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (loop_init() || errands_init() || http_init(&limits, serves, 4096) ||
	    http_serve(&(struct http_socket){.fd = listening(argv[1])}) ||
	    loop_watch(&signals, signalfd(-1, &set, SFD_CLOEXEC), EPOLLIN, drain, NULL) ||
	    loop_timer_init(&look, stop_when_done, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	loop_run(turn);
	errands_fini();
	loop_fini();
	return requests ? 3 : 0;
}
