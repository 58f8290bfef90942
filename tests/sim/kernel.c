/* Descriptors that are simulated: sockets with messages, pipes, eventfds, signals and the ends of
 * processes. Files and memory are the system's own. A message waits in its receiver, with its
 * descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim.h"

enum { FIRST = 100000, MOST = 4096, OVERHEAD = 700 };

enum kind { SOCKET, PIPE, EVENT, SIGNALS, PROCESS };

struct packet {
	STAILQ_ENTRY(packet) place;
	size_t size;
	unsigned fds;
	int fd[MESSAGE_FDS_MAX]; /* its own */
	char data[];
};

struct node {
	enum kind kind;
	unsigned users;
	bool is_far;
	struct node *peer; /* the other end of a socket or a pipe; NULL: it is closed */
	STAILQ_HEAD(, packet) packets;
	size_t bytes, room; /* waiting, and most that wait */
	uint64_t edges, value;
	struct process *process;
};

static struct node *table[MOST];
static unsigned open_count;
size_t sim_socket_room, sim_link_room;

static struct node *node_of(int fd)
{
	return fd >= FIRST && fd < FIRST + MOST ? table[fd - FIRST] : NULL;
}

static int give_fd(struct node *o)
{
	unsigned i = 0;

	while (i < MOST && table[i])
		i++;
	must(i < MOST);
	table[i] = o;
	o->users++;
	open_count++;
	return FIRST + (int)i;
}

static struct node *make(enum kind kind)
{
	struct node *o = calloc(1, sizeof *o);

	must(o);
	o->kind = kind;
	o->edges = 1;
	STAILQ_INIT(&o->packets);
	return o;
}

unsigned sim_descriptors(void)
{
	return open_count;
}

int __real_close(int fd);
int __wrap_close(int fd);

static void drop_packet(struct packet *p)
{
	for (unsigned i = 0; i < p->fds; i++)
		__wrap_close(p->fd[i]);
	free(p);
}

static void leave(struct node *o)
{
	struct packet *p;

	if (--o->users)
		return;
	while ((p = STAILQ_FIRST(&o->packets))) {
		STAILQ_REMOVE_HEAD(&o->packets, place);
		drop_packet(p);
	}
	if (o->peer) {
		o->peer->peer = NULL;
		o->peer->edges++;
	}
	free(o);
}

int __wrap_close(int fd)
{
	struct node *o = node_of(fd);

	if (o) {
		table[fd - FIRST] = NULL;
		open_count--;
		leave(o);
		return 0;
	}
	if (__real_close(fd))
		violated("descriptor %d is closed though it is not open", fd);
	return 0;
}

void sim_kernel_reset(void)
{
	for (int i = 0; i < MOST; i++)
		if (table[i])
			__wrap_close(FIRST + i);
	must(!open_count);
}

uint32_t sim_ready(int fd)
{
	const struct node *o = node_of(fd);

	must(o);
	if (o->is_far && o->process->is_hung)
		return 0;
	switch (o->kind) {
	case SOCKET:
		return (!STAILQ_EMPTY(&o->packets) || !o->peer ? EPOLLIN : 0) |
		       (!o->peer || o->peer->bytes < o->peer->room ? EPOLLOUT : 0);
	case PIPE:
		return o->peer ? 0 : EPOLLIN;
	case EVENT:
	case SIGNALS:
		return o->value ? EPOLLIN : 0;
	case PROCESS:
		return o->process->has_ended ? EPOLLIN : 0;
	}
	return 0;
}

bool sim_is_far(int fd)
{
	return node_of(fd)->is_far;
}

void sim_set_far(int fd, struct process *process)
{
	struct node *o = node_of(fd);

	o->is_far = true;
	o->process = process;
}

uint64_t sim_edges(int fd)
{
	return node_of(fd)->edges;
}

static bool lacks_descriptor(void)
{
	const bool lacks = sim_lacks_descriptor();

	if (lacks)
		errno = EMFILE;
	return lacks;
}

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return lacks_descriptor() ? -1 : __real_memfd_create(name, flags);
}

/* ---- sockets and pipes ---- */

static void connect_two(enum kind kind, size_t room, int fds[2])
{
	struct node *ends[] = {make(kind), make(kind)};

	for (int i = 0; i < 2; i++) {
		ends[i]->peer = ends[!i];
		ends[i]->room = room;
		fds[i] = give_fd(ends[i]);
	}
}

int __wrap_socketpair(int domain, int type, int protocol, int fds[2]);

int __wrap_socketpair(int domain, int type, int protocol, int fds[2])
{
	(void)domain, (void)type, (void)protocol;
	if (lacks_descriptor())
		return -1;
	connect_two(SOCKET, sim_socket_room, fds);
	return 0;
}

int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size);

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	struct node *o = node_of(fd);

	if (!o)
		return __real_setsockopt(fd, level, option, value, size);
	o->peer->room = sim_link_room;
	return 0;
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size);

/* The size of a buffer, which the front compares with its largest message: a socket takes a message
 * of any size when it is empty. */
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
	static const int enough = 1 << 20;

	(void)level, (void)option;
	must(node_of(fd) && *size == sizeof enough);
	memcpy(value, &enough, sizeof enough);
	return 0;
}

int __wrap_pipe2(int fds[2], int flags);

int __wrap_pipe2(int fds[2], int flags)
{
	(void)flags;
	if (lacks_descriptor())
		return -1;
	connect_two(PIPE, 0, fds);
	return 0;
}

int __real_fcntl(int fd, int command, ...);

int sim_duplicate(int fd)
{
	struct node *o = node_of(fd);

	return o ? give_fd(o) : __real_fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *header, int flags);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *header, int flags)
{
	const struct cmsghdr *control = header->msg_controllen ? CMSG_FIRSTHDR(header) : NULL;
	struct node *o = node_of(fd), *to = o ? o->peer : NULL;
	struct packet *p;
	size_t size = 0, at = 0;

	(void)flags;
	must(o && o->kind == SOCKET);
	for (size_t i = 0; i < header->msg_iovlen; i++)
		size += header->msg_iov[i].iov_len;
	errno = to ? EAGAIN : EPIPE;
	if (!to || (to->bytes && to->bytes + size + OVERHEAD > to->room))
		return -1;
	p = malloc(sizeof *p + size);
	must(p);
	*p = (struct packet){.size = size};
	for (size_t i = 0; i < header->msg_iovlen; i++) {
		if (header->msg_iov[i].iov_len)
			memcpy(p->data + at, header->msg_iov[i].iov_base,
			       header->msg_iov[i].iov_len);
		at += header->msg_iov[i].iov_len;
	}
	if (control)
		p->fds = (unsigned)((control->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (unsigned i = 0; i < p->fds; i++) {
		int sent;

		memcpy(&sent, CMSG_DATA(control) + i * sizeof sent, sizeof sent);
		p->fd[i] = sim_duplicate(sent);
		must(p->fd[i] >= 0); /* or it was closed */
	}
	STAILQ_INSERT_TAIL(&to->packets, p, place);
	to->bytes += size + OVERHEAD;
	return (ssize_t)size;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags);

ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags)
{
	struct node *o = node_of(fd);
	struct cmsghdr *control;
	struct packet *p;
	size_t at = 0;

	(void)flags;
	must(o && o->kind == SOCKET);
	p = STAILQ_FIRST(&o->packets);
	header->msg_flags = 0;
	errno = EAGAIN;
	if (!p) {
		header->msg_controllen = 0;
		return o->peer ? -1 : 0;
	}
	STAILQ_REMOVE_HEAD(&o->packets, place);
	o->bytes -= p->size + OVERHEAD;
	if (o->peer)
		o->peer->edges++;
	for (size_t i = 0; i < header->msg_iovlen && at < p->size; i++) {
		const size_t room = header->msg_iov[i].iov_len,
		             part = p->size - at < room ? p->size - at : room;

		memcpy(header->msg_iov[i].iov_base, p->data + at, part);
		at += part;
	}
	header->msg_flags |= at < p->size ? MSG_TRUNC : 0;
	for (unsigned i = 0; i < p->fds && lacks_descriptor(); p->fds = 0) {
		for (; i < p->fds; i++)
			__wrap_close(p->fd[i]);
		header->msg_flags |= MSG_CTRUNC;
	}
	if (p->fds) {
		control = header->msg_control;
		control->cmsg_level = SOL_SOCKET;
		control->cmsg_type = SCM_RIGHTS;
		control->cmsg_len = CMSG_LEN(p->fds * sizeof(int));
		memcpy(CMSG_DATA(control), p->fd, p->fds * sizeof(int));
	}
	header->msg_controllen = p->fds ? CMSG_SPACE(p->fds * sizeof(int)) : 0;
	at = p->size;
	free(p);
	return (ssize_t)at;
}

/* ---- numbers ---- */

int __wrap_eventfd(unsigned value, int flags);

int __wrap_eventfd(unsigned value, int flags)
{
	struct node *o = make(EVENT);

	(void)flags;
	o->value = value;
	return give_fd(o);
}

int __wrap_signalfd(int fd, const sigset_t *mask, int flags);

int __wrap_signalfd(int fd, const sigset_t *mask, int flags)
{
	(void)fd, (void)mask, (void)flags;
	return give_fd(make(SIGNALS));
}

void sim_raise(int number)
{
	for (int i = 0; i < MOST; i++)
		if (table[i] && table[i]->kind == SIGNALS)
			table[i]->value |= UINT64_C(1) << number;
}

int sim_pidfd(struct process *process)
{
	struct node *o = make(PROCESS);

	o->process = process;
	return give_fd(o);
}

ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);

ssize_t __wrap_read(int fd, void *data, size_t size)
{
	struct node *o = node_of(fd);
	struct signalfd_siginfo info = {0};

	if (!o)
		return __real_read(fd, data, size);
	if (o->kind == PIPE && !o->peer)
		return 0;
	if (!o->value) {
		errno = EAGAIN;
		return -1;
	}
	if (o->kind == EVENT) {
		memcpy(data, &o->value, sizeof o->value);
		o->value = 0;
		return sizeof o->value;
	}
	info.ssi_signo = (uint32_t)__builtin_ctzll(o->value);
	o->value &= o->value - 1;
	memcpy(data, &info, sizeof info);
	return sizeof info;
}

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
	struct node *o = node_of(fd);
	uint64_t more;

	if (!o)
		return __real_write(fd, data, size);
	must(o->kind == EVENT && size == sizeof more);
	memcpy(&more, data, sizeof more);
	o->value += more;
	return (ssize_t)size;
}

ssize_t __wrap_getrandom(void *data, size_t size, unsigned flags);

ssize_t __wrap_getrandom(void *data, size_t size, unsigned flags)
{
	const uint64_t number = sim_random();

	(void)flags;
	must(size == sizeof number);
	memcpy(data, &number, size);
	return (ssize_t)size;
}

int __wrap_fcntl(int fd, int command, ...);

int __wrap_fcntl(int fd, int command, ...)
{
	struct node *o = node_of(fd);
	va_list list;
	long argument;

	va_start(list, command);
	argument = va_arg(list, long);
	va_end(list);
	if (command == F_DUPFD_CLOEXEC && lacks_descriptor())
		return -1;
	if (!o)
		return __real_fcntl(fd, command, argument);
	return command == F_DUPFD_CLOEXEC ? give_fd(o) : 0;
}
