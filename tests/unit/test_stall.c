/* Whether a process works, waits or is stopped, and for how long it has worked. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loop.h"
#include "process/stall.h"
#include "unit.h"

enum child { SLEEPS, WORKS, STOPPED, TRACED };

/* Returns the verdict after ten looks at a child. */
static const char *looked_at(enum child kind, bool busy, uint64_t *worked)
{
	const char *word = NULL;
	pid_t pid = fork();
	struct stall stall;

	if (!pid) {
		if (kind == TRACED)
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		if (kind == TRACED || kind == STOPPED)
			raise(SIGSTOP);
		for (;;)
			if (kind != WORKS)
				pause();
	}
	usleep(50000); /* until it is where it stays */
	stall_init(&stall, pid);
	for (int i = 0; i < 10; i++) {
		word = stall_look(&stall, busy);
		usleep(50000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	*worked = stall.worked_ns;
	return word;
}

TEST(test_stall)
{
	const uint64_t begun = loop_now();
	uint64_t worked;

	assert_null(looked_at(WORKS, true, &worked));
	assert_in_range(worked, 1000000, loop_now() - begun);
	assert_null(looked_at(SLEEPS, false, &worked));
	assert_in_range(worked, 0, 50000000);
	assert_string_equal(looked_at(SLEEPS, true, &worked), "stuck");
	assert_string_equal(looked_at(STOPPED, true, &worked), "stopped");
	assert_string_equal(looked_at(STOPPED, false, &worked), "stopped");
	assert_null(looked_at(TRACED, false, &worked)); /* its debugger's business */
}

/* Between two looks nothing counts for more than the time that passed: of many threads, or of what
 * a process had used before it was looked at. */
TEST(test_worked)
{
	struct stall stall;
	uint64_t used;

	stall_init(&stall, getpid());
	stall.looked_ns -= 1000000; /* 1 ms ago, in which this process used more */
	assert_null(stall_look(&stall, true));
	used = stall.used_ns;
	assert_true(used > stall.worked_ns);
	assert_in_range(stall.worked_ns, 1000000, used - 1);
	stall.looked_ns -= 3000000000;
	stall.worked_ns = 0;
	assert_null(stall_look(&stall, true));
	assert_int_equal(stall.worked_ns, stall.used_ns - used); /* not the 3 s that have passed */
}
