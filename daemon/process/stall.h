/* Detects a stalled child process: one that was stopped by a signal, or gets no processor time
 * although it has work. A process that a debugger stopped is left alone. Does not read /proc, which
 * may be hidden. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STALL_LOOK_MS = 500 }; /* between two looks */

struct stall {
	pid_t pid;
	clockid_t clock;             /* measures its processor time */
	uint64_t used_ns, looked_ns; /* at the last look: processor time, and wall-clock time */
	/* Returns the time during which it had a processor, as far as looks can tell: the processor
	 * time used between two looks, but no more than the wall-clock time. */
	uint64_t worked_ns;
	unsigned still; /* consecutive looks without progress */
};

void stall_init(struct stall *stall, pid_t pid);

/* Looks at a child that has not been reaped. busy: it has work that takes processor time. Returns
 * the reason to kill it, in a word, or NULL. */
const char *stall_look(struct stall *stall, bool busy);
