/* Relays a worker's standard output and error into the log, through a pipe. A worker that writes
 * too much is paused: the pipe fills, and the worker counts the lines that do not fit. */
#ifndef FRONT_WORKERS_RELAY_H
#define FRONT_WORKERS_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/loop.h"

/* Embedded where it is used. */
struct relay {
	const char *kind, *name, *program; /* the worker's: "codec", "codec-3", "convolved-codec" */
	pid_t pid;
	struct loop_watch watch; /* on the pipe's reading end, which is ours */
	int fd;                  /* the same; -1: none */
	bool paused;
	LIST_ENTRY(relay) place; /* in the list of paused relays */
	uint64_t began;          /* start of its turn: loop_now() */
	unsigned steps;          /* in this turn */
	size_t length;
	char text[2048]; /* `length` bytes read but not yet logged */
};

enum error relay_init(void) MUST_CHECK;
void relay_fini(void);

/* Creates the pipe. *end, its non-blocking writing end, is the caller's, for the worker's standard
 * output and error. The members up to `program` must be set. */
enum error relay_open(struct relay *relay, int *end) MUST_CHECK;

/* Logs the remaining lines and closes the pipe. Does nothing if fd is -1. */
void relay_close(struct relay *relay);

#endif
