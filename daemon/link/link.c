/* The link: datagrams over SOCK_SEQPACKET. */
#include "link/link.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	SOCKET_BUFFER = 1 << 20,
	QUEUED_FD = 32 << 10, /* bytes that a descriptor counts as */
};

static const struct {
	const char *name;
	uint32_t flags;
	size_t data;
	size_t fds;
} types[LINK_TYPES] = {
#define LINK(symbol, flags, data, fds) {#symbol, flags, data, fds},
#include "link/link.def"
#undef LINK
};

/* A message that waits to be sent. */
struct link_packet {
	STAILQ_ENTRY(link_packet) place;
	struct link_message message;
	int fd; /* owned; -1: none */
	size_t size;
	char data[];
};

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

const char *link_name(uint32_t type)
{
	return type < LINK_TYPES ? types[type].name : "unknown message";
}

enum error link_pair(int fds[2])
{
	static const int size = SOCKET_BUFFER;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds))
		return ERR_IO;
	for (int i = 0; i < 2; i++) /* a smaller one only means more waiting */
		setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	return ERR_OK;
}

/* Sends a datagram. Returns 1, or 0 if it cannot be sent now, or -1. */
static int send_one(int socket, const struct link_message *message, const void *data, size_t size,
                    int fd)
{
	struct iovec parts[] = {{(void *)(uintptr_t)message, sizeof *message},
	                        {(void *)(uintptr_t)data, size}};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};
	union control control = {0};
	ssize_t sent;

	if (fd >= 0) {
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof control.bytes;
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(&control.align), &fd, sizeof fd);
	}
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return 1;
	/* ETOOMANYREFS: this user's descriptors in sockets, and not yet received, are too many. */
	return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ? 0 : -1;
}

/* The bytes that a packet counts as in the queue. */
static size_t cost(size_t size, int fd)
{
	return sizeof(struct link_packet) + size + (fd >= 0 ? QUEUED_FD : 0);
}

static void packet_free(struct link_packet *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

void link_flush(struct link *link)
{
	struct link_packet *p;

	if (!link->queued)
		return;
	while ((p = STAILQ_FIRST(&link->queue))) {
		/* A failure means that the other end is closed, which shows where this is read. */
		if (!send_one(link->readable.fd, &p->message, p->data, p->size, p->fd))
			return;
		STAILQ_REMOVE_HEAD(&link->queue, place);
		link->queued -= cost(p->size, p->fd);
		packet_free(p);
	}
	loop_unwatch(&link->writable);
}

static void writable(void *context)
{
	link_flush(context);
}

/* Queues a packet, and watches for room while there is a queue, not always: a socket becomes
 * writable each time that a message is read from its other end, which would wake the sender of
 * every one. */
static bool enqueue(struct link *link, const struct link_message *message, const void *data,
                    size_t size, int fd)
{
	struct link_packet *p;

	p = malloc(sizeof *p + size);
	if (!p)
		return false;
	p->message = *message;
	p->size = size;
	if (size)
		memcpy(p->data, data, size);
	p->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if ((fd >= 0 && p->fd < 0) ||
	    (link->writable.fd < 0 &&
	     loop_watch(&link->writable, link->again, EPOLLOUT | EPOLLET, writable, link))) {
		packet_free(p);
		return false;
	}
	STAILQ_INSERT_TAIL(&link->queue, p, place);
	link->queued += cost(size, fd);
	return true;
}

bool link_send(struct link *link, const struct link_message *message, const void *data, size_t size,
               int fd)
{
	int sent = 0;

	assert(size <= types[message->type].data &&
	       !(message->flags & ~types[message->type].flags));
	assert((fd >= 0) == types[message->type].fds);
	if (link->readable.fd < 0)
		return false;
	if (STAILQ_EMPTY(&link->queue))
		sent = send_one(link->readable.fd, message, data, size, fd);
	return sent > 0 || (!sent && enqueue(link, message, data, size, fd));
}

/* Returns the descriptor that came with a message, or -1, and closes all others. *count: how many
 * came. */
static int receive_fd(struct msghdr *header, size_t *count)
{
	int fd = -1, extra;

	*count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
			memcpy(&extra, (char *)c + at, sizeof extra);
			if (fd < 0)
				fd = extra;
			else
				close(extra);
			++*count;
		}
	}
	return fd;
}

/* Returns what is wrong with a datagram, or NULL. */
static const char *check(const struct link_message *message, ssize_t got, size_t fds, int flags)
{
	/* This process may have no more descriptors, which is not the sender's fault. */
	bool starved = flags & MSG_CTRUNC && !fds;

	if (got < (ssize_t)sizeof *message || flags & MSG_TRUNC ||
	    (flags & MSG_CTRUNC && !starved) || message->type >= LINK_TYPES)
		return "packet";
	if (message->flags & ~types[message->type].flags ||
	    (starved ? 1 : fds) != types[message->type].fds ||
	    (size_t)got - sizeof *message > types[message->type].data)
		return types[message->type].name;
	return NULL;
}

/* Receives a datagram. False: there is none, or no more. */
static bool receive(struct link *link)
{
	static char data[LINK_DATA_MAX + 1];
	struct link_message message = {0};
	struct iovec parts[] = {{&message, sizeof message}, {data, LINK_DATA_MAX}};
	union control control;
	struct msghdr header = {.msg_iov = parts,
	                        .msg_iovlen = 2,
	                        .msg_control = control.bytes,
	                        .msg_controllen = sizeof control.bytes};
	const char *wrong;
	size_t fds;
	ssize_t got;
	int fd;

	do
		got = recvmsg(link->readable.fd, &header, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return false;
	fd = got < 0 ? -1 : receive_fd(&header, &fds);
	if (got < 0 || (!got && fd < 0)) {
		link->owner->broken(link->context, NULL);
		return false;
	}
	wrong = check(&message, got, fds, header.msg_flags);
	if (wrong) {
		if (fd >= 0)
			close(fd);
		link->owner->broken(link->context, wrong);
		return false;
	}
	data[(size_t)got - sizeof message] = '\0';
	link->owner->message(link->context, &message, data, (size_t)got - sizeof message, fd);
	return true;
}

/* Receives messages until there are none, or a flood has had its time: the loop must turn. */
static void receive_some(void *context)
{
	struct link *link = context;
	uint64_t end = loop_now() + LINK_TURN_NS;

	while (link->readable.fd >= 0 && receive(link) && loop_now() < end)
		continue;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

enum error link_open(struct link *link, int fd, const struct link_owner *owner, void *context)
{
	*link = (struct link){
	    .owner = owner, .context = context, .again = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
	link->readable.fd = link->writable.fd = -1;
	STAILQ_INIT(&link->queue);
	if (link->again >= 0 && !loop_watch(&link->readable, fd, EPOLLIN, receive_some, link))
		return ERR_OK;
	close_fd(&link->again);
	close(fd);
	return ERR_IO;
}

void link_close(struct link *link)
{
	int fd = link->readable.fd;
	struct link_packet *p;

	loop_unwatch(&link->readable);
	loop_unwatch(&link->writable);
	close_fd(&fd);
	close_fd(&link->again);
	while ((p = STAILQ_FIRST(&link->queue))) {
		STAILQ_REMOVE_HEAD(&link->queue, place);
		packet_free(p);
	}
	link->queued = 0;
}
