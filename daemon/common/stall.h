/* Whether a child process stands still: stopped by a signal, or without a moment of processor time
 * though it has something to do. A stop that a debugger asked for is the debugger's. Nothing is
 * read from /proc, which may be hidden. */
#ifndef COMMON_STALL_H
#define COMMON_STALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum { STALL_LOOK_MS = 500 }; /* between two looks */

struct stall {
	pid_t pid;
	clockid_t clock;             /* of its processor time */
	uint64_t used_ns, looked_ns; /* at the last look: by that clock, and by that of the wall */
	/* Time at which it had a processor, as far as looks can tell: what it used between two of
	 * them, on however many processors, but no more than what passed. */
	uint64_t worked_ns;
	unsigned still; /* looks at which it had used no more, one after another */
};

void stall_init(struct stall *stall, pid_t pid);

/* A look at a child that has not been reaped. busy: it has something to do that takes processor
 * time. Returns a word on why it is to be killed, or NULL. */
const char *stall_look(struct stall *stall, bool busy);

#endif
