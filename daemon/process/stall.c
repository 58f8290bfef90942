/* Counts looks, not seconds, so that a parent that was delayed itself does not accuse its child. */
#include "process/stall.h"

#include <sys/wait.h>

#include "base/clock.h"

enum { STILL_MAX = 8 }; /* its pages may have to come from a busy disk first */

void stall_init(struct stall *s, pid_t pid)
{
	*s = (struct stall){.pid = pid};
	if (clock_getcpuclockid(pid, &s->clock))
		s->clock = CLOCK_MONOTONIC; /* never stalls */
	s->looked_ns = clock_ns(CLOCK_MONOTONIC);
}

const char *stall_look(struct stall *s, bool busy)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), used = clock_ns(s->clock);
	uint64_t passed = now - s->looked_ns, more = used - s->used_ns;
	siginfo_t info = {0};

	s->still = busy && !more ? s->still + 1 : 0;
	s->worked_ns += more < passed ? more : passed;
	s->looked_ns = now;
	s->used_ns = used;
	if (!waitid(P_PID, (id_t)s->pid, &info, WSTOPPED | WNOHANG | WNOWAIT) &&
	    info.si_pid == s->pid && info.si_code == CLD_STOPPED)
		return "stopped";
	return s->still >= STILL_MAX ? "stuck" : NULL;
}
