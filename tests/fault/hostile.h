/* The common part of workers that have been taken over. They do what CONVOLVED_HOSTILE says. */
#pragma once

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../lib/descriptors.h"
#include "wire/wire.h"

static const char *mode;

static inline bool is(const char *name)
{
	return !strcmp(mode, name);
}

/* Returns a word of CONVOLVED_HOSTILE, counted from 0; NULL if there are fewer. */
static inline const char *word_of(unsigned number)
{
	char *rest = strdup(getenv("CONVOLVED_HOSTILE")), *word = strsep(&rest, ",");

	while (number-- && word)
		word = strsep(&rest, ",");
	return word;
}

static inline void die(const char *what)
{
	fprintf(stderr, "<4>hostile: %s: %s\n", what, strerror(errno));
	_exit(1);
}

/* Sends a datagram with more descriptors than any has, or (size 0) with nothing else. */
static inline void say_with_descriptors(int socket, const void *message, size_t size,
                                        unsigned count)
{
	if (send_with_descriptors(socket, message, size, count) < 0)
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

static bool spoils; /* from now on messages are changed in some places */

/* Rarely changes the job. Returns true if the message has been sent, with descriptors. */
static inline bool spoil(struct message *message)
{
	static const uint64_t numbers[] = {0, 1, 2, 64, 255, UINT32_MAX, UINT64_MAX, 1ull << 62};
	uint64_t *words = (uint64_t *)(void *)&message->hello;
	const uint64_t job = words[0];

	for (uint64_t i = random_number(4); i; i--)
		words[random_number(24)] =
		    random_number(2) ? numbers[random_number(8)] : random_number(UINT32_MAX);
	if (random_number(4))
		words[0] = job;
	if (message->type < MESSAGES && !message_fds(message->type) && random_number(16))
		return false;
	say_with_descriptors(WORKER_SOCKET, message, 8 + (size_t)random_number(sizeof *message - 8),
	                     1 + (unsigned)random_number(8));
	return true;
}

static inline void say(struct message *message, enum message_type type)
{
	message->type = type;
	if (spoils && spoil(message))
		return;
	if (wire_send(WORKER_SOCKET, message, NULL))
		die("send");
}

static inline bool can_map(int file)
{
	return mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED;
}

static inline bool can_change(int file)
{
	return can_map(file) || pwrite(file, "x", 1, 0) > 0 || !ftruncate(file, 1);
}

/* A member that is wrong in a mode's messages of this type: a number, or a text full of one byte.
 */
struct lie {
	const char *mode;
	enum message_type type;
	size_t at, size;
	uint64_t value;
};
#define LIE(mode, symbol, member, value)                                                           \
	{                                                                                          \
		mode, MSG_##symbol, offsetof(struct message, member),                              \
		    sizeof(((struct message *)0)->member), value                                   \
	}

static inline void say_with_lies(struct message *message, enum message_type type,
                                 const struct lie *lies, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *at = (char *)message + lies[i].at;

		if (lies[i].type != type || !is(lies[i].mode))
			continue;
		if (lies[i].size > sizeof lies[i].value)
			memset(at, (int)lies[i].value, lies[i].size);
		else
			memcpy(at, &lies[i].value, lies[i].size); /* little-endian */
	}
	say(message, type);
}

/* Becomes the honest program beside this one. */
static inline void be_honest(const char *name, char **argv)
{
	char path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);

	path[length > 0 ? length : 0] = '\0';
	strcpy(strrchr(path, '/') + 1, name);
	execv(path, argv);
	die(path);
}
