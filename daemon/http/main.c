/* convolved-http: accepts connections, speaks TLS and HTTP by libmicrohttpd, run from our own loop,
 * and passes requests to the front, which starts it. Its first socket carries messages about the
 * worker, the second one (the link) requests. It ends when the front does.
 *
 * The loop also watches each client's socket, to notice a client that leaves: the library does not
 * look at a suspended connection, nor for an end within a body. */
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>

#include "base/clock.h"
#include "base/errand.h"
#include "base/log.h"
#include "base/loop.h"
#include "http/exchange.h"
#include "http/headers.h"
#include "http/service.h"
#include "link/address.h"
#include "link/certificate.h"
#include "process/sandbox.h"
#include "process/start.h"
#include "wire/wire.h"

enum {
	/* OOM score: its clients would lose their connections, so codec workers go first */
	EXPENDABLE = 400,
	CONNECTION_MEMORY = 128 << 10, /* bytes of buffer; larger is faster for large bodies */
	/* for each daemon; share_connections_most() is lower, and limits the sum */
	CONNECTIONS_MAX = 1 << 20,
	MONITORS_MAX = 64, /* connections for metrics, which are outside the limits on clients */
	END_MS = 10,
	REPORT_MS = 20,
	PAUSE_MS = 100,
	WAIT_MAX_MS = 60000,
};

/* TLS 1.3, and 1.2 with the algorithms that 1.3 has kept: ephemeral keys on elliptic curves, and
 * ciphers that authenticate. */
static const char tls_versions[] = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:"
                                   "+ECDHE-ECDSA:+ECDHE-RSA:-MAC-ALL:+AEAD:-GROUP-DH-ALL";

/* A client that connected so long ago and sent nothing is not about to send a request. */
static const uint64_t silent_ns = 5000000000u;

/* A client's socket, and the request under way on it. */
struct client {
	struct peer peer;          /* must be first: contexts of calls point to it */
	TAILQ_ENTRY(client) place; /* in the list of all clients */
	struct loop_watch watch;
	uint64_t since;           /* loop_now() */
	LIST_ENTRY(client) leave; /* in the list of those whose end libmicrohttpd has not seen */
	LIST_ENTRY(client) wait;  /* in the list of those to suspend */
	bool waits, suspended;    /* for the next bytes of its handshake */
};

/* A listening socket; each worker has one. */
struct listening {
	struct http_socket socket;
	struct loop_watch watch;
};

static struct {
	struct MHD_Daemon *mhd; /* NULL until there is a socket */
	struct loop_watch watch;
} daemons[2]; /* without TLS, and with */
static struct listening sockets[HTTP_SOCKETS_MAX];
static unsigned socket_count;
static uint64_t descriptors_most; /* with which clients are accepted */
static struct loop_timer pause_end;
static TAILQ_HEAD(clients, client) clients = TAILQ_HEAD_INITIALIZER(clients); /* oldest first */
static LIST_HEAD(client_list, client) leaving, waiting;
static struct loop_timer ends, report;
static struct loop_watch front;
static bool limited; /* the first limits have come */

/* Handles a client that has closed its side, and later possibly its socket. */
static void client_left(void *context)
{
	struct client *client = context;
	struct pollfd look = {.fd = client->watch.fd};

	client->peer.gone = poll(&look, 1, 0) > 0 && look.revents & (POLLHUP | POLLERR);
	if (!client->peer.left) { /* show_ends() wakes this again */
		client->peer.left = true;
		LIST_INSERT_HEAD(&leaving, client, leave);
		if (!loop_timer_left(&ends))
			loop_timer_start(&ends, END_MS);
	}
	if (client->peer.exchange)
		exchange_leave(client->peer.exchange);
}

/* Makes libmicrohttpd notice clients that have left. It does not look again at a socket whose last
 * bytes came together with the end, so it is woken once it has read these. */
static void show_ends(void *)
{
	struct client *client, *next;

	for (client = LIST_FIRST(&leaving); client; client = next) {
		next = LIST_NEXT(client, leave);
		if (intake_unread(client->peer.intake.fd))
			continue;
		shutdown(client->watch.fd, SHUT_RD);
		LIST_REMOVE(client, leave);
		client->leave.le_prev = NULL;
	}
	if (!LIST_EMPTY(&leaving))
		loop_timer_start(&ends, END_MS);
}

/* Names the client, which takes a place among the connections unless it is for metrics alone. */
static void name_client(struct client *client)
{
	struct peer *peer = &client->peer;

	headers_name_client(peer->intake.fd, peer->address, peer->name);
	if (!peer->monitoring)
		service_guest_name(&peer->guest, peer->name, peer->intake.proxied);
}

/* From now on the connection counts as the client's, not the proxy's. */
static void client_proxied(void *context, const struct sockaddr_storage *source)
{
	struct client *client = context;

	client->peer.source = *source;
	client->peer.address = (const struct sockaddr *)&client->peer.source;
	name_client(client);
}

/* More of a handshake has arrived, or its end. */
static void client_knocks(void *context)
{
	struct client *client = context;

	if (client->suspended)
		MHD_resume_connection(client->peer.connection);
	client->suspended = false;
}

static enum error watch_client(struct client *client)
{
	bool handshake = client->peer.intake.state == INTAKE_HANDSHAKE;
	int fd = client->peer.intake.fd;

	loop_unwatch(&client->watch);
	return loop_watch(&client->watch, fd, handshake ? EPOLLIN | EPOLLET : EPOLLRDHUP | EPOLLET,
	                  handshake ? client_knocks : client_left, client);
}

/* libmicrohttpd 0.9.75 considers a socket readable until it has read data itself, so during a
 * handshake it would ask GnuTLS again and again unless it is suspended. */
static void client_shakes_hands(void *context, bool done)
{
	struct client *client = context;

	if (done && watch_client(client))
		shutdown(client->peer.intake.fd, SHUT_RDWR);
	if (done || client->waits)
		return;
	client->waits = true;
	LIST_INSERT_HEAD(&waiting, client, wait);
}

static void client_free(struct client *client)
{
	loop_unwatch(&client->watch);
	if (client->leave.le_prev)
		LIST_REMOVE(client, leave);
	if (client->waits)
		LIST_REMOVE(client, wait);
	exchange_free(client->peer.exchange);
	service_guest_close(&client->peer.guest);
	intake_close(&client->peer.intake);
	TAILQ_REMOVE(&clients, client, place);
	free(client);
}

/* Ends the oldest of too many connections for metrics, an idle one if there is one. */
static void bound_monitors(void)
{
	struct client *client, *oldest = NULL;
	unsigned count = 0;

	TAILQ_FOREACH(client, &clients, place) {
		if (!client->peer.monitoring || client->peer.gone)
			continue;
		count++;
		if (!oldest || (oldest->peer.exchange && !client->peer.exchange))
			oldest = client;
	}
	if (count <= MONITORS_MAX)
		return;
	oldest->peer.gone = true;
	shutdown(oldest->peer.intake.fd, SHUT_RDWR);
}

static struct client *client_new(struct MHD_Connection *connection, int fd,
                                 const struct http_socket *socket)
{
	struct client *client = calloc(1, sizeof *client);
	struct sockaddr_storage address;
	struct sockaddr *own = (struct sockaddr *)&address;
	socklen_t size = sizeof address;

	if (!client)
		return NULL;
	client->peer.connection = connection;
	client->peer.address =
	    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
	client->peer.monitoring = socket->metrics;
	client->peer.loopback =
	    !getsockname(fd, own, &size) && own->sa_family != AF_UNIX && address_is_local(own);
	client->peer.intake =
	    (struct intake){.fd = fd,
	                    .tls = socket->tls,
	                    .proxied = networks_have(&limits.trusted_proxies, client->peer.address),
	                    .context = client};
	client->watch.fd = -1;
	service_guest_open(&client->peer.guest, client);
	client->since = loop_now();
	TAILQ_INSERT_TAIL(&clients, client, place);
	intake_open(&client->peer.intake);
	name_client(client);
	if (watch_client(client)) {
		client_free(client);
		return NULL;
	}
	if (socket->metrics)
		bound_monitors();
	return client;
}

static void connection_changed(void *, struct MHD_Connection *connection, void **socket_context,
                               enum MHD_ConnectionNotificationCode code)
{
	struct client *client = *socket_context;
	int fd;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (client)
			client_free(client);
		*socket_context = NULL;
		/* No handshake needs certificates any more that were replaced before it. */
		client = TAILQ_FIRST(&clients);
		certificate_forget(client ? client->since : UINT64_MAX);
		return;
	}
	fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	*socket_context = client = client_new(connection, fd, intake_origin(fd));
	exchange_set_timeout(connection);
	if (!client)
		shutdown(fd, SHUT_RDWR); /* nobody would check what it sends */
}

static void request_completed(void *, struct MHD_Connection *connection, void **exchange,
                              enum MHD_RequestTerminationCode code)
{
	struct client *client =
	    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

	exchange_free(*exchange);
	*exchange = NULL;
	if (client)
		intake_answered(&client->peer.intake, code != MHD_REQUEST_TERMINATED_COMPLETED_OK);
}

static void log_mhd(void *, const char *format, va_list args)
{
	char line[512];

	vsnprintf(line, sizeof line, format, args);
	line[strcspn(line, "\n")] = '\0';
	log_debug("http: %s", line);
}

/* turn() follows, and runs every daemon. */
static void daemon_ready(void *)
{
}

/* Starts the library's part, once. With TLS it asks for a certificate at each handshake. */
static enum error start_daemon(bool secure)
{
	struct MHD_OptionItem tls[] = {
	    {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)certificate_finder()},
	    {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)tls_versions},
	    {MHD_OPTION_END, 0, NULL},
	};
	unsigned flags =
	    MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	struct MHD_Daemon *mhd;

	if (daemons[secure].mhd)
		return ERR_OK;
	mhd = MHD_start_daemon(
	    secure ? flags | MHD_USE_TLS : flags, 0, NULL, NULL, exchange_handle, NULL,
	    MHD_OPTION_EXTERNAL_LOGGER, log_mhd, NULL, MHD_OPTION_NOTIFY_COMPLETED,
	    request_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, connection_changed, NULL,
	    MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
	    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)limits.idle_timeout, MHD_OPTION_ARRAY,
	    secure ? tls : tls + 2, MHD_OPTION_END);
	if (!mhd) {
		log_error("libmicrohttpd cannot start: %m");
		return ERR_IO;
	}
	daemons[secure].mhd = mhd;
	daemons[secure].watch.fd = -1; /* turn() watches it */
	return ERR_OK;
}

static void pause_accepting(void)
{
	for (unsigned i = 0; i < socket_count; i++)
		loop_unwatch(&sockets[i].watch);
	loop_timer_start(&pause_end, PAUSE_MS);
}

/* False if there is nobody, or no descriptor. */
static bool accept_client(const struct listening *l)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	int fd =
	    accept4(l->socket.fd, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
		log_debug("cannot accept a client: %m");
		pause_accepting();
	}
	if (fd < 0)
		return false;
	/* The library may accept several clients before it reports the first. */
	if (!intake_expect(fd, &l->socket))
		close(fd);
	else if (MHD_add_connection(daemons[l->socket.tls].mhd, fd, (struct sockaddr *)&address,
	                            size) != MHD_YES)
		log_debug("libmicrohttpd does not take a client: %m");
	if ((uint64_t)fd < descriptors_most)
		return true;
	pause_accepting();
	return false;
}

static void await_clients(struct listening *l);

/* Leaves the next client to another worker. While the front is silent, clients wait in the sockets,
 * where the end of this process would cost them nothing. */
static void client_came(void *context)
{
	if (!service_speaks())
		pause_accepting();
	else if (accept_client(context))
		await_clients(context);
}

/* A client wakes the worker that has waited longest; libmicrohttpd's own epoll would wake all. Each
 * worker begins to wait anew after a client, so idle workers take turns. */
static void await_clients(struct listening *l)
{
	loop_unwatch(&l->watch);
	if (loop_watch(&l->watch, l->socket.fd, EPOLLIN | EPOLLEXCLUSIVE, client_came, l))
		pause_accepting();
}

static void await_all(void *)
{
	for (unsigned i = 0; i < socket_count; i++)
		await_clients(&sockets[i]);
}

/* Tells the front when every request on the accepted connections is answered. */
static void report_drained(void *)
{
	const struct client *client;

	/* A request may still arrive on an idle connection: the client connected just now, or has
	 * sent data that has not been read. */
	TAILQ_FOREACH(client, &clients, place) {
		const struct peer *peer = &client->peer;
		bool young = !peer->intake.answered && loop_now() - client->since < silent_ns;

		if (peer->exchange || (!peer->refused && (young || intake_unread(peer->intake.fd))))
			return;
	}
	service_drained();
}

/* The number of the front's next descriptor; they are assigned from above. */
static int spare;

/* Keeps descriptors that are opened or received from now on out of shared sockets' numbers. */
static void keep_numbers(void)
{
	int fd;

	while ((fd = eventfd(0, EFD_CLOEXEC)) >= 0 && fd < HTTP_OWN_FDS)
		spare = fd + 1;
	close(fd);
	spare--;
}

/* Accepts no more connections, except (last) those that already wait, and ends each after the
 * answer to its next request. */
static void drain(bool last)
{
	exchanges_drain();
	for (unsigned i = 0; i < socket_count; i++) {
		loop_unwatch(&sockets[i].watch);
		while (last && accept_client(&sockets[i]))
			continue;
	}
	while (socket_count)
		close(sockets[--socket_count].socket.fd);
	keep_numbers(); /* which they have left */
	loop_timer_repeat(&report, REPORT_MS);
}

static enum error import_certificate(const struct message_certificate *message, int fd)
{
	size_t size = message->chain_size + message->key_size;
	char *text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	const char *wrong;

	close(fd);
	if (text == MAP_FAILED)
		return ERR_IO;
	wrong =
	    certificate_import(&(struct pem){text, message->chain_size},
	                       &(struct pem){text + message->chain_size, message->key_size}, true);
	munmap(text, size);
	if (wrong)
		log_error("the certificate cannot be used: %s", wrong);
	return wrong ? ERR_INTERNAL : ERR_OK;
}

/* An error is the front's fault, or the machine lacks something; another worker is started. */
static enum error receive_message(const struct message *message, const int *fds)
{
	switch (message->type) {
	case MSG_LINK:
		return service_init(fds[0], &exchange_calls, drain);
	case MSG_LIMITS:
		limits = message->limits.limits;
		limited = true;
		return ERR_OK;
	case MSG_CERTIFICATE:
		return import_certificate(&message->certificate, fds[0]);
	case MSG_LISTEN:
		if (start_daemon(message->listen.tls))
			return ERR_IO;
		sockets[socket_count] =
		    (struct listening){.socket = {.fd = fds[0],
		                                  .tls = message->listen.tls,
		                                  .metrics = message->listen.metrics},
		                       .watch.fd = -1};
		await_clients(&sockets[socket_count++]);
		return ERR_OK;
	default:
		return ERR_INTERNAL;
	}
}

static void hear(void *)
{
	bool shared = limited; /* the link, which comes before the limits, is this worker's own */
	struct message message;
	enum wire_result result;
	int fds[MESSAGE_FDS_MAX];

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
	static const struct intake_calls calls = {.refuse = exchange_break,
	                                          .look = exchange_look,
	                                          .handshake = client_shakes_hands,
	                                          .proxied = client_proxied};
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
	descriptors_most = files.rlim_max / 4 * 3;
	if (setrlimit(RLIMIT_NOFILE, &files) || loop_init() || intakes_init(&calls) ||
	    loop_timer_init(&pause_end, await_all, NULL) ||
	    loop_timer_init(&report, report_drained, NULL) ||
	    loop_timer_init(&ends, show_ends, NULL) ||
	    loop_watch(&front, WORKER_SOCKET, EPOLLIN, hear, NULL) ||
	    sandbox_enter(SANDBOX_HTTP, &(struct sandbox_access){0}) || errands_init())
		return ERR_INTERNAL;
	keep_numbers();
	ready.ready.startup_ms = (uint32_t)(now_ms() - begun);
	return wire_send(WORKER_SOCKET, &ready, NULL);
}

/* Does pending work; returns the milliseconds that the loop may wait, -1: any time. */
static int run_daemons(void)
{
	const bool full = service_is_full(); /* nothing more is taken from clients */
	MHD_UNSIGNED_LONG_LONG timeout;
	struct client *client;
	int wait = -1, epoll;

	for (unsigned i = 0; i < sizeof daemons / sizeof *daemons; i++) {
		if (!daemons[i].mhd)
			continue;
		if (full) {
			loop_unwatch(&daemons[i].watch);
			continue;
		}
		epoll = MHD_get_daemon_info(daemons[i].mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
		if (daemons[i].watch.fd < 0 &&
		    loop_watch(&daemons[i].watch, epoll, EPOLLIN, daemon_ready, NULL))
			return END_MS;
		MHD_run(daemons[i].mhd);
		if (MHD_get_timeout(daemons[i].mhd, &timeout) == MHD_YES &&
		    (wait < 0 || timeout < (unsigned)wait))
			wait = (int)MIN(timeout, WAIT_MAX_MS);
	}
	while ((client = LIST_FIRST(&waiting))) {
		LIST_REMOVE(client, wait);
		client->waits = false;
		client->suspended = true;
		MHD_suspend_connection(client->peer.connection);
	}
	return wait;
}

static int turn(void)
{
	int wait = run_daemons(), soon = service_turn();

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
