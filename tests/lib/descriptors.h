/* Messages with more descriptors than their types have. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Sends a datagram with `count` descriptors, at most 64, each of them standard input. size 0: with
 * nothing else. Returns sendmsg()'s result. */
static inline ssize_t send_with_descriptors(int socket, const void *message, size_t size,
                                            unsigned count)
{
	union {
		char bytes[CMSG_SPACE(64 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)message, size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	header.msg_control = control.bytes;
	header.msg_controllen = CMSG_SPACE(count * sizeof(int));
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
	return sendmsg(socket, &header, MSG_NOSIGNAL);
}
