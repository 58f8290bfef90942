/* The common part of workers that have been taken over. They do what CONVOLVED_HOSTILE says. */
#ifndef FAULT_HOSTILE_H
#define FAULT_HOSTILE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

static const char *mode;

static inline bool is(const char *name)
{
	return !strcmp(mode, name);
}

static inline void die(const char *what)
{
	fprintf(stderr, "<4>hostile: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static inline void say(struct message *message, enum message_type type)
{
	message->type = type;
	if (wire_send(WORKER_SOCKET, message, NULL))
		die("send");
}

/* A datagram with more descriptors than any has, or (size 0) with nothing else. */
static inline void say_with_descriptors(int socket, const void *message, size_t size,
                                        unsigned count)
{
	union {
		char bytes[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)message, size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	const int fd = 0;

	header.msg_control = control.bytes;
	header.msg_controllen = CMSG_SPACE(count * sizeof fd);
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(count * sizeof fd);
	for (unsigned i = 0; i < count; i++)
		memcpy(CMSG_DATA(&control.align) + i * sizeof fd, &fd, sizeof fd);
	if (sendmsg(socket, &header, MSG_NOSIGNAL) < 0)
		die("sendmsg");
}

static inline uint64_t random_number(uint64_t n)
{
	static uint64_t state;

	if (!state)
		state = (uint64_t)time(NULL) * 1000 + (uint64_t)getpid();
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 33) % n;
}

#endif
