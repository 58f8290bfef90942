/* Messages over SOCK_SEQPACKET: each is sent as its type's struct and no longer. */
#include "wire/wire.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct {
	const char *name;
	size_t size;
	size_t fds;
} messages[MESSAGES] = {
#define MESSAGE(symbol, member, fds)                                                               \
	{#symbol, offsetof(struct message, member) + sizeof(struct message_##member), fds},
#include "wire/messages.def"
};

union control {
	char bytes[CMSG_SPACE(MESSAGE_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

unsigned message_fds(enum message_type type)
{
	return (unsigned)messages[type].fds;
}

const char *message_name(enum message_type type)
{
	return type < MESSAGES ? messages[type].name : "unknown";
}

void wire_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

bool datagram_send(int socket, struct iovec *parts, size_t count, const int *fds, size_t fd_count)
{
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = count};
	union control control = {0};
	ssize_t sent;

	if (fd_count) {
		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, fd_count * sizeof(int));
	}
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent >= 0;
}

ssize_t datagram_receive(int socket, struct iovec *parts, size_t count, int fds[MESSAGE_FDS_MAX],
                         size_t *fd_count, int *flags)
{
	union control control;
	struct msghdr header = {.msg_iov = parts,
	                        .msg_iovlen = count,
	                        .msg_control = control.bytes,
	                        .msg_controllen = sizeof control.bytes};
	ssize_t size;

	do
		size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	*fd_count = 0;
	/* MESSAGE_FDS_MAX at most. The alignment of the control data leaves room for one more,
	 * which is closed. */
	for (struct cmsghdr *c = size < 0 ? NULL : CMSG_FIRSTHDR(&header); c;
	     c = CMSG_NXTHDR(&header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0);
		     at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
			if (*fd_count < MESSAGE_FDS_MAX)
				fds[*fd_count] = fd;
			else
				close(fd);
			++*fd_count;
		}
	}
	*flags = header.msg_flags;
	return size;
}

enum error wire_send(int socket, const struct message *message, const int *fds)
{
	struct iovec part = {(void *)(uintptr_t)message, messages[message->type].size};

	return datagram_send(socket, &part, 1, fds, messages[message->type].fds) ? ERR_OK : ERR_IO;
}

enum wire_result wire_receive(int socket, struct message *message, int fds[MESSAGE_FDS_MAX])
{
	struct iovec part = {message, sizeof *message};
	size_t count;
	ssize_t size;
	int flags;

	memset(message, 0, sizeof *message);
	size = datagram_receive(socket, &part, 1, fds, &count, &flags);
	if (size < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? WIRE_NOTHING : WIRE_CLOSED;
	if (!size && !count)
		return WIRE_CLOSED;
	if (!(flags & (MSG_TRUNC | MSG_CTRUNC)) && message->type < MESSAGES &&
	    (size_t)size == messages[message->type].size && count == messages[message->type].fds)
		return WIRE_MESSAGE;
	for (size_t i = 0; i < count && i < MESSAGE_FDS_MAX; i++)
		close(fds[i]);
	return WIRE_BROKEN;
}

/* Limits far beyond any device: a tuner's measurement in nanoseconds, and its samples. */
static const uint64_t measured_ns_max = 60000000000u, samples_max = 1u << 31;

bool choice_valid(const struct message_choice *choice)
{
	if (choice->count < 1 || choice->count > CANDIDATES_MAX ||
	    choice->chosen >= choice->count || choice->samples > samples_max)
		return false;
	for (uint32_t i = 0; i < choice->count; i++)
		if (choice->candidate[i].kernel >= KERNELS ||
		    choice->candidate[i].ns > measured_ns_max)
			return false;
	return true;
}

bool choice_is_for(const struct message_choice *choice, const struct message_choice *kind)
{
	if (strcmp(choice->work, kind->work) || choice->count != kind->count)
		return false;
	for (uint32_t i = 0; i < kind->count; i++)
		if (choice->candidate[i].kernel != kind->candidate[i].kernel ||
		    memcmp(&choice->candidate[i].shape, &kind->candidate[i].shape,
		           sizeof(struct shape)))
			return false;
	return true;
}
