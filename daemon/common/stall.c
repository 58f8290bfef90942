/* Looks are counted, not seconds: a parent that was held up itself accuses nobody. */
#include "stall.h"

#include <sys/wait.h>

enum { STILL_MOST = 3 };

void stall_init(struct stall *s, pid_t pid)
{
	*s = (struct stall){.pid = pid};
	if (clock_getcpuclockid(pid, &s->clock))
		s->clock = CLOCK_MONOTONIC; /* never stands still */
}

static bool is_stopped(pid_t pid)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) &&
	       info.si_pid == pid && info.si_code == CLD_STOPPED;
}

static uint64_t used_ns(const struct stall *s)
{
	struct timespec used = {0};

	clock_gettime(s->clock, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

const char *stall_look(struct stall *s, bool busy)
{
	uint64_t used = used_ns(s);

	s->still = busy && used == s->used_ns ? s->still + 1 : 0;
	s->used_ns = used;
	if (is_stopped(s->pid))
		return "stopped";
	return s->still >= STILL_MOST ? "stuck" : NULL;
}
