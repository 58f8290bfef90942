/* What a worker says on its standard output and error, by a pipe, and how it comes into the log. A
 * worker that says too much is not listened to for a while: the pipe fills, and it counts by itself
 * what does not fit. */
#ifndef FRONT_WORKERS_RELAY_H
#define FRONT_WORKERS_RELAY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "front/base/loop.h"

/* Embedded where it is used. */
struct relay {
	const char *kind; /* of the worker, with its number: "codec", 3 */
	uint32_t number;
	const char *program; /* who says it */
	pid_t pid;
	struct loop_watch watch; /* on the pipe's reading end, which is ours */
	int fd;                  /* the same; -1: none */
	struct relay *next,
	    **link;     /* of those that are not listened to for now; link NULL: it is not one */
	uint64_t began; /* of its turn: loop_now() */
	unsigned steps; /* of this turn */
	size_t length;
	char text[2048]; /* a line that has not ended */
};

enum error relay_init(void) MUST_CHECK;
void relay_fini(void);

/* Makes the pipe; *end is the caller's: for the worker's descriptors, which do not block. The
 * members up to `program` are set. */
enum error relay_open(struct relay *relay, int *end) MUST_CHECK;

/* Takes what is still there, and closes. One that is closed (fd -1) may be closed again. */
void relay_close(struct relay *relay);

#endif
