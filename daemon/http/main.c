/* convolved-http: accepts connections, speaks TLS and HTTP, and passes requests to the front, which
 * starts it. Its first socket carries what concerns the worker, the second one (the link) its
 * requests. It ends when the front does. */
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>

#include "base/clock.h"
#include "base/errand.h"
#include "base/log.h"
#include "base/loop.h"
#include "http/http.h"
#include "http/service.h"
#include "link/certificate.h"
#include "process/sandbox.h"
#include "process/start.h"
#include "wire/wire.h"

/* OOM score: its clients would lose their connections, so codec workers go first. */
enum { EXPENDABLE = 400, REPORT_MS = 20 };

static struct loop_watch front;
static struct loop_timer report;
static bool limited; /* http_init() has been called */
static struct rlimit files;

/* Without the front there is nothing to do, and nobody to tell. */
static void end(void)
{
	_exit(0);
}

static void tell_drained(void *context)
{
	(void)context;
	if (http_drained())
		service_drained();
}

/* The number that the front's next descriptor gets. It takes them from above. */
static int spare;

/* Keeps what is opened or received from now on out of the numbers of shared sockets. */
static void keep_numbers(void)
{
	int fd;

	while ((fd = eventfd(0, EFD_CLOEXEC)) >= 0 && fd < HTTP_OWN_FDS)
		spare = fd + 1;
	close(fd);
	spare--;
}

static void drain(bool last)
{
	http_drain(last);
	keep_numbers(); /* which the closed sockets have left */
	loop_timer_repeat(&report, REPORT_MS);
}

static const struct service_calls service_calls = {.drain = drain, .lost = end};

/* Takes over the certificate and its key, as the memfd has them. */
static enum error import_certificate(const struct message_certificate *message, int fd)
{
	size_t size = message->chain_size + message->key_size;
	char *text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	const char *wrong;

	close(fd);
	if (text == MAP_FAILED)
		return ERR_IO;
	wrong = certificate_import(&(struct pem){text, message->chain_size},
	                           &(struct pem){text + message->chain_size, message->key_size});
	munmap(text, size);
	if (wrong)
		log_error("the certificate cannot be used: %s", wrong);
	else
		certificate_commit();
	return wrong ? ERR_INTERNAL : ERR_OK;
}

/* An error is one of the front, or the machine is out of something: the front starts another. */
static enum error receive_message(const struct message *message, const int *fds)
{
	const struct limits *limits = &message->limits.limits;

	switch (message->type) {
	case MSG_LINK:
		return service_init(fds[0], &service_calls);
	case MSG_LIMITS:
		if (limited) {
			http_limit(limits);
			return ERR_OK;
		}
		limited = true;
		return http_init(limits, service_speaks, files.rlim_max);
	case MSG_CERTIFICATE:
		return import_certificate(&message->certificate, fds[0]);
	case MSG_LISTEN:
		return http_serve(&(struct http_socket){
		    .fd = fds[0], .tls = message->listen.tls, .metrics = message->listen.metrics});
	default:
		return ERR_INTERNAL;
	}
}

static void hear(void *context)
{
	bool shared = limited; /* the link, which comes before the limits, is this worker's own */
	struct message message;
	int fds[MESSAGE_FDS_MAX];

	(void)context;
	if (shared)
		close(spare); /* leaves a number for the next descriptor */
	switch (wire_receive(WORKER_SOCKET, &message, fds)) {
	case WIRE_NOTHING:
		break;
	case WIRE_CLOSED:
		end();
		break;
	case WIRE_MESSAGE:
		if (!receive_message(&message, fds))
			break;
		log_error("cannot continue after the message %s", message_name(message.type));
		_exit(1);
	case WIRE_BROKEN:
		log_error("the front sent an invalid message");
		_exit(1);
	}
	if (shared)
		keep_numbers();
}

static enum error start(void)
{
	struct message ready = {.type = MSG_READY};
	const uint64_t begun = now_ms();
	const time_t now = time(NULL);
	struct tm parts;
	enum error e;

	/* Libraries read their files once: the zone of local time, GnuTLS's priorities. */
	tzset();
	gmtime_r(&now, &parts);
	gnutls_global_init();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getrlimit(RLIMIT_NOFILE, &files))
		return ERR_INTERNAL;
	files.rlim_cur = files.rlim_max; /* descriptors are for connections */
	if (setrlimit(RLIMIT_NOFILE, &files))
		return ERR_INTERNAL;
	e = loop_init();
	if (!e)
		e = loop_timer_init(&report, tell_drained, NULL);
	if (!e)
		e = loop_watch(&front, WORKER_SOCKET, EPOLLIN, hear, NULL);
	if (!e)
		e = sandbox_enter(SANDBOX_HTTP, &(struct sandbox_access){0});
	if (!e)
		e = errands_init();
	keep_numbers();
	ready.ready.startup_ms = (uint32_t)(now_ms() - begun);
	return e ? e : wire_send(WORKER_SOCKET, &ready, NULL);
}

static int turn(void)
{
	int wait = limited ? http_turn(service_is_full()) : -1, soon = service_turn();

	errands_turn();
	return soon >= 0 && (wait < 0 || soon < wait) ? soon : wait;
}

int main(void)
{
	static struct start how;

	start_receive("convolved-http", EXPENDABLE, &how);
	if (start()) {
		log_error("cannot start: %m");
		return 1;
	}
	loop_run(turn);
	return 1;
}
