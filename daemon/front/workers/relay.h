/* Relays a worker's standard output and error into the log, through a pipe. A worker that writes
 * too much is paused: the pipe fills, and the worker counts the lines that do not fit. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/loop.h"

/* Embedded where it is used. */
struct relay {
	const char *kind, *name, *program; /* the worker's: "codec", "codec-3", "convolved-codec" */
	pid_t pid;
	int fd;                  /* the pipe's reading end, which is ours; -1: none */
	struct loop_watch watch; /* on it, unless it is paused */
	struct loop_timer turn;  /* runs while it is */
	uint64_t began;          /* start of its turn: loop_now() */
	unsigned steps;          /* in this turn */
	size_t length;
	char text[2048]; /* `length` bytes read but not yet logged */
};

/* Creates the pipe. *end, its non-blocking writing end, is the caller's, for the worker's standard
 * output and error. The members up to `program` must be set. */
enum error relay_open(struct relay *relay, int *end) MUST_CHECK;

/* Logs the remaining lines and closes the pipe. Does nothing if fd is -1. */
void relay_close(struct relay *relay);
