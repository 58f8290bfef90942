/* Replaces recv(), sendfile() and functions of GnuTLS for libmicrohttpd, as the linker allows.
 * Peeking at the socket would show neither data within TLS nor a head that follows another one, and
 * a pair of sockets would copy each byte twice more.
 *
 * The library receives and sends once in a turn of the loop, by TLS at most 16 KiB, which costs
 * less than the turn. Here it continues while there are more. */
#include "http/intake.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/loop.h"
#include "http/proxy.h"

enum { CHECK_MS = 500, DROPS_A_TURN = 32, LINGER_S = 2 };

static const uint64_t second = 1000000000; /* in nanoseconds */

struct limits limits;
static const struct intake_calls *calls;
static uint64_t checked; /* loop_now() of the last check */

static ssize_t (*tls_receive)(gnutls_session_t session, void *data, size_t size);
static ssize_t (*tls_send)(gnutls_session_t session, const void *data, size_t size);
static int (*tls_handshake)(gnutls_session_t session);
static struct {
	const struct http_socket *origin;
	struct intake *intake; /* while it is open */
} * by_fd;
static size_t by_fd_size;
static struct loop_timer check;

static struct intake *find(int fd)
{
	return fd >= 0 && (size_t)fd < by_fd_size ? by_fd[fd].intake : NULL;
}

static void set_state(struct intake *i, enum intake_state state)
{
	i->state = state;
	i->since = i->began = loop_now();
	i->bytes = 0;
	i->request = i->grammar.requests;
}

static enum intake_state state_of(const struct intake *i)
{
	if (i->tls && !i->session)
		return INTAKE_HANDSHAKE;
	if (!grammar_is_idle(&i->grammar) && i->grammar.state <= GRAMMAR_HEADERS)
		return INTAKE_HEAD;
	if (i->grammar.state > GRAMMAR_HEADERS && i->grammar.state < GRAMMAR_OVER)
		return INTAKE_BODY;
	return i->answered < i->grammar.requests ? INTAKE_BUSY : INTAKE_IDLE;
}

/* Enters the state that follows from the received bytes. */
static void follow(struct intake *i)
{
	enum intake_state state = state_of(i);

	if (i->state < INTAKE_FAULTY && (state != i->state || i->request != i->grammar.requests))
		set_state(i, state);
}

static bool is_over(const struct intake *i, uint64_t seconds)
{
	return loop_now() - i->began > seconds * second;
}

#define late(problem, ...) problem_set(problem, ERR_BODY_TIMEOUT, __VA_ARGS__)

static enum error check_arrival(const struct intake *i, struct problem *problem)
{
	const uint64_t measured = (loop_now() - i->since) / second;
	const uint64_t heard = MAX(i->heard, i->since);

	if (i->state == INTAKE_HEAD && is_over(i, limits.header_timeout))
		return late(problem, "the headers are incomplete after %" PRIu64 " s",
		            limits.header_timeout);
	if (i->state != INTAKE_BODY)
		return ERR_OK;
	if (is_over(i, limits.body_timeout))
		return late(problem, "the body is incomplete after %" PRIu64 " s",
		            limits.body_timeout);
	if (measured >= limits.header_timeout && i->bytes / measured < limits.body_rate)
		return late(problem,
		            "the body arrives at %" PRIu64 " bytes a second; at least %" PRIu64
		            " are expected",
		            i->bytes / measured, limits.body_rate);
	if (loop_now() - heard > limits.idle_timeout * second)
		return late(problem, "no data for %" PRIu64 " s, and the body is incomplete",
		            limits.idle_timeout);
	return ERR_OK;
}

/* After a delay of the loop itself nobody is judged, because clients' data may be unread. */
static void check_all(void *)
{
	const bool delayed = loop_held_up(&checked, CHECK_MS);
	bool any = false;

	for (size_t fd = 0; fd < by_fd_size; fd++) {
		struct intake *i = by_fd[fd].intake;
		struct problem problem;
		enum error e;

		if (!i)
			continue;
		any = true;
		calls->look(i->context);
		if (delayed)
			continue;
		e = check_arrival(i, &problem);
		if (e)
			calls->refuse(i->context, e, &problem);
		else if ((i->state == INTAKE_HANDSHAKE && is_over(i, limits.header_timeout)) ||
		         (i->state == INTAKE_IDLE && is_over(i, limits.keepalive_timeout)) ||
		         (i->state >= INTAKE_HELD && is_over(i, LINGER_S)))
			shutdown(i->fd, SHUT_RDWR); /* the library then looks at it */
	}
	if (any)
		loop_timer_start(&check, CHECK_MS);
}

enum error intakes_init(const struct intake_calls *c)
{
	calls = c;
	*(void **)&tls_receive = dlsym(RTLD_NEXT, "gnutls_record_recv");
	*(void **)&tls_send = dlsym(RTLD_NEXT, "gnutls_record_send");
	*(void **)&tls_handshake = dlsym(RTLD_NEXT, "gnutls_handshake");
	if (!tls_receive || !tls_send || !tls_handshake) {
		log_error("cannot find GnuTLS: %s", dlerror());
		return ERR_INTERNAL;
	}
	return loop_timer_init(&check, check_all, NULL);
}

bool intake_expect(int fd, const struct http_socket *origin)
{
	size_t size = (size_t)fd < by_fd_size ? by_fd_size : 2 * (size_t)fd + 1;
	void *larger;

	if (size > by_fd_size) {
		larger = realloc(by_fd, size * sizeof(*by_fd));
		if (!larger)
			return false;
		by_fd = larger;
		memset(by_fd + by_fd_size, 0, (size - by_fd_size) * sizeof(*by_fd));
		by_fd_size = size;
	}
	by_fd[fd].origin = origin;
	return true;
}

const struct http_socket *intake_origin(int fd)
{
	return by_fd[fd].origin;
}

void intake_open(struct intake *i)
{
	by_fd[i->fd].intake = i;
	set_state(i, state_of(i));
	if (!loop_timer_left(&check)) {
		checked = loop_now();
		loop_timer_start(&check, CHECK_MS);
	}
}

void intake_close(struct intake *i)
{
	by_fd[i->fd].intake = NULL;
	grammar_fini(&i->grammar);
}

bool intake_send(const struct intake *i, const char *data, size_t size)
{
	ssize_t sent;

	if (i->tls)
		sent = i->session ? gnutls_record_send(i->session, data, size) : -1;
	else
		sent = send(i->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent == (ssize_t)size;
}

void intake_hold(struct intake *i)
{
	set_state(i, INTAKE_HELD);
}

void intake_end(struct intake *i, const char *data, size_t size)
{
	if (!intake_send(i, data, size))
		log_debug("http: cannot send a refusal");
	if (i->session)
		gnutls_bye(i->session, GNUTLS_SHUT_WR);
	set_state(i, INTAKE_LAST);
	shutdown(i->fd, SHUT_WR); /* the library looks again */
}

static void refuse(struct intake *i)
{
	intake_hold(i);
	calls->refuse(i->context, i->fault, &i->problem);
}

void intake_answered(struct intake *i, bool last)
{
	i->answered++;
	follow(i);
	if (i->state == INTAKE_FAULTY && i->answered == i->grammar.requests && !last)
		refuse(i);
}

void intake_excuse(struct intake *i)
{
	i->since = loop_now();
	i->bytes = 0;
}

static ssize_t receive_raw(int fd, void *data, size_t size, int flags)
{
	return syscall(SYS_recvfrom, fd, data, size, flags, NULL, NULL);
}

/* Receives the client's data from the socket, after removing the header of the PROXY protocol once
 * that is complete. */
static ssize_t receive_bytes(struct intake *i, void *data, size_t size)
{
	char header[PROXY_HEADER_MAX];
	struct sockaddr_storage source;
	ssize_t got;
	int length;

	if (!i->proxied)
		return receive_raw(i->fd, data, size, 0);
	got = receive_raw(i->fd, header, sizeof header, MSG_PEEK);
	if (got <= 0)
		return got;
	length = proxy_parse(header, (size_t)got, &source);
	if (length == PROXY_INCOMPLETE) {
		errno = EAGAIN;
		return -1;
	}
	i->proxied = false;
	if (length == PROXY_MALFORMED) {
		log_notice("http: a proxy has sent a malformed header of the PROXY protocol");
		shutdown(i->fd, SHUT_RDWR);
		return 0;
	}
	if (length > 0 && receive_raw(i->fd, header, (size_t)length, 0) != length)
		return 0;
	if (length > 0 && source.ss_family != AF_UNSPEC)
		calls->proxied(i->context, &source);
	return receive_raw(i->fd, data, size, 0);
}

int intake_unread(int fd)
{
	int bytes = 0;

	return ioctl(fd, FIONREAD, &bytes) ? 0 : bytes;
}

/* Receives the arrived data, by TLS without a connection's end behind records: if TLS does not
 * announce that, GnuTLS would send no answer any more. */
static ssize_t receive(struct intake *i, char *data, size_t size)
{
	size_t received = 0;
	ssize_t got;

	if (!i->tls)
		return receive_bytes(i, data, size);
	do {
		got = tls_receive(i->session, data + received, size - received);
		received += got > 0 ? (size_t)got : 0;
	} while (got > 0 && received < size && intake_unread(i->fd));
	return received ? (ssize_t)received : got;
}

static ssize_t nothing(const struct intake *i)
{
	errno = EAGAIN;
	return i->tls ? GNUTLS_E_AGAIN : -1;
}

/* Receives data that nobody reads, but not so much that others wait. Returns 0 at the end. */
static ssize_t drop(struct intake *i)
{
	static char sink[64 << 10];
	ssize_t got = 1;

	if (is_over(i, LINGER_S))
		return 0;
	for (int n = 0; got > 0 && n < DROPS_A_TURN; n++)
		got = receive(i, sink, sizeof sink);
	return got > 0 || (!got && i->state == INTAKE_HELD) ? nothing(i) : got;
}

/* Receives what the library may see. */
static ssize_t take(struct intake *i, void *data, size_t size)
{
	size_t sound, taken = 0;
	ssize_t got;

	/* The library is wrong if it expects more after the last request. */
	if (i->state < INTAKE_FAULTY && i->grammar.state == GRAMMAR_OVER)
		set_state(i, INTAKE_LAST);
	if (i->state >= INTAKE_HELD)
		return drop(i);
	/* The library would take a gap, left by chunks' extensions, for the end of the data. */
	do {
		char *at = (char *)data + taken;

		got = i->state == INTAKE_FAULTY ? nothing(i) : receive(i, at, size - taken);
		if (got <= 0)
			return taken ? (ssize_t)taken : got;
		i->fault = grammar_read(&i->grammar, at, (size_t)got, &sound, &i->problem);
		i->bytes += (uint64_t)got;
		i->heard = loop_now();
		taken += sound;
		if (!i->fault)
			follow(i);
	} while (!i->fault && sound < (size_t)got && i->grammar.state != GRAMMAR_OVER);
	/* Refuses the connection, now or when its earlier requests are answered. */
	if (i->fault) {
		set_state(i, INTAKE_FAULTY);
		if (i->answered == i->grammar.requests)
			refuse(i);
	}
	return taken && i->state < INTAKE_HELD ? (ssize_t)taken : nothing(i);
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
	struct intake *i = flags ? NULL : find(fd);

	if (!i)
		return receive_raw(fd, data, size, flags);
	/* GnuTLS calls this, too, for its records. */
	return i->tls ? receive_bytes(i, data, size) : take(i, data, size);
}

ssize_t gnutls_record_recv(gnutls_session_t session, void *data, size_t size)
{
	struct intake *i = find(gnutls_transport_get_int(session));

	return i ? take(i, data, size) : tls_receive(session, data, size);
}

ssize_t sendfile64(int fd, int file, off64_t *offset, size_t size)
{
	struct intake *i = find(fd);
	ssize_t sent = syscall(SYS_sendfile, fd, file, offset, size);

	if (i && sent > 0)
		i->sent += (uint64_t)sent;
	return sent;
}

uint64_t intake_read(const struct intake *i)
{
	int unread = 0;

	return ioctl(i->fd, SIOCOUTQ, &unread) || (uint64_t)unread > i->sent
	           ? 0
	           : i->sent - (uint64_t)unread;
}

ssize_t gnutls_record_send(gnutls_session_t session, const void *data, size_t size)
{
	struct intake *i = find(gnutls_transport_get_int(session));
	const char *at = data;
	size_t sent = 0;
	ssize_t got;

	do {
		got = tls_send(session, at + sent, size - sent);
		sent += got > 0 ? (size_t)got : 0;
	} while (got > 0 && sent < size);
	if (i)
		i->sent += sent;
	return sent ? (ssize_t)sent : got;
}

int gnutls_handshake(gnutls_session_t session)
{
	struct intake *i = find(gnutls_transport_get_int(session));
	int result = tls_handshake(session);

	if (!i)
		return result;
	if (result == GNUTLS_E_SUCCESS) {
		i->session = session;
		follow(i);
	}
	if (result == GNUTLS_E_SUCCESS || result == GNUTLS_E_AGAIN)
		calls->handshake(i->context, result == GNUTLS_E_SUCCESS);
	return result;
}
