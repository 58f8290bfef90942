/* convolved-http: accepts connections, speaks TLS and HTTP, and passes requests to the front, which
 * starts it. Its first socket carries what concerns the worker, the second one (the link) its
 * requests. It ends when the front does. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
enum { EXPENDABLE = 400 };

static struct loop_watch front;
static bool limited; /* the first limits have come */

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
}

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
	switch (message->type) {
	case MSG_LINK:
		return service_init(fds[0], drain);
	case MSG_LIMITS:
		http_limit(&message->limits.limits);
		limited = true;
		return ERR_OK;
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
	enum wire_result result;
	int fds[MESSAGE_FDS_MAX];

	(void)context;
	if (shared)
		close(spare); /* leaves a number for the next descriptor */
	result = wire_receive(WORKER_SOCKET, &message, fds);
	if (result == WIRE_CLOSED)
		_exit(0);
	if (result == WIRE_BROKEN) {
		log_error("the front sent an invalid message");
		_exit(1);
	}
	if (result == WIRE_MESSAGE && receive_message(&message, fds)) {
		log_error("cannot continue after the message %s", message_name(message.type));
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
	struct rlimit files;
	struct tm parts;

	/* Libraries read their files once: the zone of local time, GnuTLS's priorities. */
	tzset();
	gmtime_r(&now, &parts);
	gnutls_global_init();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getrlimit(RLIMIT_NOFILE, &files))
		return ERR_INTERNAL;
	files.rlim_cur = files.rlim_max; /* descriptors are for connections */
	if (setrlimit(RLIMIT_NOFILE, &files) || loop_init() || http_init(files.rlim_max) ||
	    loop_watch(&front, WORKER_SOCKET, EPOLLIN, hear, NULL) ||
	    sandbox_enter(SANDBOX_HTTP, &(struct sandbox_access){0}) || errands_init())
		return ERR_INTERNAL;
	keep_numbers();
	ready.ready.startup_ms = (uint32_t)(now_ms() - begun);
	return wire_send(WORKER_SOCKET, &ready, NULL);
}

static int turn(void)
{
	int wait = http_turn(), soon = service_turn();

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
