/* A process that stands still without a fault, and how long one has worked; tests/fault stops,
 * holds up and spins workers. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/stall.h"
#include "unit.h"

/* A process that its debugger holds is not accused. */
TEST(test_traced)
{
	pid_t pid = fork();
	const char *word;
	struct stall stall;
	siginfo_t info;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
	stall_init(&stall, pid);
	word = stall_look(&stall, false);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_null(word);
}

/* Between two looks nothing counts for more than the time that passed: of many threads, or of what
 * a process had used before it was looked at. */
TEST(test_worked)
{
	struct stall stall;
	uint64_t used;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < 100000000)
		;
	stall_init(&stall, getpid());
	stall.looked_ns -= 1000000; /* 1 ms ago; this process has used more */
	assert_null(stall_look(&stall, true));
	used = stall.used_ns;
	assert_true(used > stall.worked_ns);
	assert_in_range(stall.worked_ns, 1000000, used - 1);
	stall.looked_ns -= 3000000000;
	stall.worked_ns = 0;
	assert_null(stall_look(&stall, true));
	assert_int_equal(stall.worked_ns, stall.used_ns - used); /* not the 3 s that have passed */
}
