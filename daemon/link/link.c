/* The link: datagrams over SOCK_SEQPACKET. */
#include "link/link.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "wire/wire.h"

enum {
	SOCKET_BUFFER = 1 << 20,
	QUEUED_FD = 32 << 10, /* bytes that a descriptor counts as */
	HEAD_SIZE = offsetof(struct link_message, data),
	DATAGRAM_MAX = HEAD_SIZE + LINK_DATA_MAX + 32, /* 32: the system's own */
};

static const struct {
	const char *name;
	uint32_t flags;
	size_t data;
} types[LINK_TYPES] = {
#define LINK(symbol, flags, data) {#symbol, flags, data},
#include "link/link.def"
};

/* A message that waits to be sent. */
struct link_packet {
	STAILQ_ENTRY(link_packet) place;
	struct link_message message; /* whose descriptor it owns */
	char data[];
};

const char *link_name(uint32_t type)
{
	return type < LINK_TYPES ? types[type].name : "unknown message";
}

enum error link_pair(int fds[2])
{
	/* Larger buffers mean less waiting; but if net.core.wmem_max is below its default, a size
	 * that is asked for makes them smaller. */
	for (int size = SOCKET_BUFFER, has = 0;; size = 0) {
		socklen_t length = sizeof has;

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds))
			return ERR_IO;
		for (int i = 0; i < 2 && size; i++)
			setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
		getsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &has, &length);
		if (has >= DATAGRAM_MAX)
			return ERR_OK;
		close(fds[0]);
		close(fds[1]);
		if (!size) {
			log_error("net.core.wmem_default is too small for requests: %d bytes", has);
			return ERR_IO;
		}
	}
}

static bool has_file(const struct link_message *message)
{
	return message->flags & LINK_HAS_FILE;
}

/* 1, or 0 if it cannot be sent now, or -1. */
static int send_one(int socket, const struct link_message *message)
{
	struct iovec parts[] = {{(void *)(uintptr_t)message, HEAD_SIZE},
	                        {(void *)(uintptr_t)message->data, message->data_size}};

	if (datagram_send(socket, parts, 2, &message->fd, has_file(message)))
		return 1;
	/* ETOOMANYREFS: too many of this user's descriptors are in sockets and not yet received. */
	return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ? 0 : -1;
}

static size_t cost(const struct link_message *message)
{
	return sizeof(struct link_packet) + message->data_size +
	       (has_file(message) ? QUEUED_FD : 0);
}

static void packet_free(struct link_packet *p)
{
	if (has_file(&p->message) && p->message.fd >= 0)
		close(p->message.fd);
	free(p);
}

void link_flush(struct link *link)
{
	struct link_packet *p;

	if (!link->queued)
		return;
	while ((p = STAILQ_FIRST(&link->queue))) {
		/* A failure means that the other end is closed, which shows where this is read. */
		if (!send_one(link->readable.fd, &p->message))
			return;
		STAILQ_REMOVE_HEAD(&link->queue, place);
		link->queued -= cost(&p->message);
		packet_free(p);
	}
	loop_unwatch(&link->writable);
}

static void writable(void *context)
{
	link_flush(context);
}

bool link_send(struct link *link, const struct link_message *message)
{
	struct link_packet *p;
	int sent = 0;

	assert(message->data_size <= types[message->type].data &&
	       !(message->flags & ~types[message->type].flags));
	if (link->readable.fd < 0)
		return false;
	if (STAILQ_EMPTY(&link->queue))
		sent = send_one(link->readable.fd, message);
	if (sent)
		return sent > 0;
	p = malloc(sizeof *p + message->data_size);
	if (!p)
		return false;
	p->message = *message;
	p->message.data = p->data;
	if (message->data_size)
		memcpy(p->data, message->data, message->data_size);
	if (has_file(message))
		p->message.fd = fcntl(message->fd, F_DUPFD_CLOEXEC, 0);
	/* Watches only while there is a queue: a socket becomes writable each time that its other
	 * end reads a message, and each of these would wake the sender. */
	if ((has_file(message) && p->message.fd < 0) ||
	    (link->writable.fd < 0 &&
	     loop_watch(&link->writable, link->again, EPOLLOUT | EPOLLET, writable, link))) {
		packet_free(p);
		return false;
	}
	STAILQ_INSERT_TAIL(&link->queue, p, place);
	link->queued += cost(message);
	return true;
}

/* Returns what is wrong with a datagram, or NULL. */
static const char *check(const struct link_message *message, ssize_t got, size_t fds, int flags)
{
	/* This process may have no more descriptors, for which the sender is not to blame. */
	bool starved = flags & MSG_CTRUNC && !fds;

	if (got < HEAD_SIZE || flags & MSG_TRUNC || (flags & MSG_CTRUNC && !starved) ||
	    message->type >= LINK_TYPES)
		return "packet";
	if (message->flags & ~types[message->type].flags ||
	    (starved ? 1 : fds) != has_file(message) ||
	    (size_t)got - HEAD_SIZE > types[message->type].data)
		return types[message->type].name;
	return NULL;
}

/* Receives a datagram. Returns false if there is none, or if no more will come. */
static bool receive(struct link *link)
{
	static char data[LINK_DATA_MAX + 1];
	struct link_message message = {.data = data};
	struct iovec parts[] = {{&message, HEAD_SIZE}, {data, LINK_DATA_MAX}};
	int fds[MESSAGE_FDS_MAX] = {-1}, flags;
	const char *wrong = NULL;
	size_t count;
	ssize_t got = datagram_receive(link->readable.fd, parts, 2, fds, &count, &flags);
	bool closed = got < 0 || (!got && !count);

	if (got < 0 && errno == EAGAIN)
		return false;
	for (size_t i = 1; i < count && i < MESSAGE_FDS_MAX; i++)
		close(fds[i]);
	message.fd = fds[0];
	if (!closed)
		wrong = check(&message, got, count, flags);
	if (closed || wrong) {
		link->owner->broken(link->context, wrong);
	} else {
		message.data_size = (size_t)got - HEAD_SIZE;
		data[message.data_size] = '\0';
		link->owner->message(link->context, &message);
	}
	file_close(&message.fd);
	return !closed && !wrong;
}

/* Receives messages until none are left, or a flood has used its time: the loop must turn. */
static void receive_some(void *context)
{
	struct link *link = context;
	uint64_t end = loop_now() + LINK_TURN_NS;

	while (link->readable.fd >= 0 && receive(link) && loop_now() < end)
		continue;
}

enum error link_open(struct link *link, int fd, const struct link_owner *owner, void *context)
{
	*link = (struct link){
	    .owner = owner, .context = context, .again = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
	link->readable.fd = link->writable.fd = -1;
	STAILQ_INIT(&link->queue);
	if (!loop_adopt(&link->readable, fd, EPOLLIN, receive_some, link) && link->again >= 0)
		return ERR_OK;
	link_close(link);
	return ERR_IO;
}

void link_close(struct link *link)
{
	struct link_packet *p;

	loop_unwatch(&link->writable);
	loop_close(&link->readable);
	file_close(&link->again);
	while ((p = STAILQ_FIRST(&link->queue))) {
		STAILQ_REMOVE_HEAD(&link->queue, place);
		packet_free(p);
	}
	link->queued = 0;
}
