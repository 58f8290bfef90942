/* Runs seeds of the simulation (sim.h):
 *
 *   test_sim                         those that once failed, and a few hundred others
 *   test_sim --seeds FROM COUNT      so many
 *   test_sim --seed N [--trace]      one, and says what happens */
#include <inttypes.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.h"

enum { FEW = 300, MANY = 5000, FAILURES_MAX = 20, STATUSES = 600 };

/* Seeds that fail if a defect comes back. A change of the simulation may give a seed another
 * meaning: then put the defect back, and look for another one. */
static const struct {
	uint64_t seed;
	const char *defect;
} known[] = {
    {8, "tiles of ended jobs are sent to devices"},
    {89, "a device that was up for a moment was not seen by those who wait for one"},
    {242, "a full link to an HTTP worker ends it"},
    {12, "requests are refused at once while all devices are quarantined"},
    {4002795, "a job is lost at a restart, since more of its tiles are done than it has"},
    {10, "answers do not wait for room in the link"},
    {704173, "the time of its start counts against an HTTP worker that is up"},
    {773664, "jobs that end in the same millisecond change their order at a restart"},
    {839368, "wait= does not end while a job's end cannot be kept"},
    {683, "a worker inherits the body of a request with a key"},
};

/* Shared with the processes that run the seeds. */
static struct {
	volatile uint64_t seed; /* that runs */
	volatile uint64_t done; /* by this process */
	uint64_t counts[COUNTS], statuses[STATUSES];
} * shared;

uint64_t *sim_counts, *sim_statuses;
bool sim_tracing;
static uint64_t seed;

void violated(const char *format, ...)
{
	va_list list;

	fflush(stdout);
	fprintf(stderr, "seed %" PRIu64 ", after %.6f s: ", seed, (double)sim_now / SIM_S - 1000);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	_exit(1);
}

void sim_trace(const char *format, ...)
{
	va_list list;

	if (!sim_tracing)
		return;
	printf("%12.6f  ", (double)sim_now / SIM_S - 1000);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	putchar('\n');
}

static void run(uint64_t number)
{
	shared->seed = seed = number;
	scenario_run(number);
	shared->done++;
}

pid_t __real_waitpid(pid_t pid, int *status, int options);

/* Runs seeds, after which no more memory may be in use than after the first of them, but for what
 * libraries keep. */
static void run_in_turn(uint64_t first, uint64_t count)
{
	enum { WARM = 50, KEPT = 256 << 10, KEPT_A_SEED = 100 };
	size_t before = 0, used;

	for (uint64_t i = 0; i < count; i++) {
		run(first + i);
		used = mallinfo2().uordblks;
		if (i == WARM)
			before = used;
		if (i > WARM && used > before + KEPT + (i - WARM) * KEPT_A_SEED)
			violated("%zu bytes of memory have been lost in %" PRIu64 " seeds",
			         used - before, i - WARM);
	}
}

/* Runs seeds in a process of its own, up to the first that fails. Returns how many have passed. */
static uint64_t run_some(uint64_t first, uint64_t count)
{
	pid_t child;
	int status;

	shared->done = 0;
	fflush(NULL);
	child = fork();
	if (!child) {
		run_in_turn(first, count);
		_exit(0);
	}
	__real_waitpid(child, &status, 0);
	scenario_tidy(child);
	if (WIFSIGNALED(status))
		fprintf(stderr, "seed %" PRIu64 ": signal %d\n", shared->seed, WTERMSIG(status));
	return shared->done;
}

static unsigned run_all(uint64_t first, uint64_t count)
{
	unsigned failed = 0;

	for (uint64_t i = 0; i < count && failed < FAILURES_MAX; i++) {
		i += run_some(first + i, count - i);
		failed += i < count;
	}
	return failed;
}

static void print_counts(void)
{
	static const char *const texts[COUNTS] = {
#define COUNT(symbol, text) [COUNT_##symbol] = text,
#include "counts.def"
#undef COUNT
	};

	for (enum count c = 0; c < COUNTS; c++)
		printf("%12" PRIu64 " %s\n", sim_counts[c], texts[c]);
	for (int i = 0; i < STATUSES; i++)
		if (sim_statuses[i])
			printf("%12" PRIu64 " answers with status %d\n", sim_statuses[i], i);
}

int main(int argc, char **argv)
{
	const bool one = argc >= 3 && !strcmp(argv[1], "--seed");
	const bool all = getenv("TEST_ALL");
	const bool some = argc == 4 && !strcmp(argv[1], "--seeds");
	unsigned failed = 0;

	shared =
	    mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(shared != MAP_FAILED);
	sim_counts = shared->counts;
	sim_statuses = shared->statuses;
	close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
	clearenv(); /* options are variables, too */
	setenv("LC_ALL", "C", 1);
	if (one) {
		sim_tracing = argc > 3;
		run(strtoull(argv[2], NULL, 10));
		scenario_tidy(getpid());
		print_counts();
		return 0;
	}
	if (some) {
		failed = run_all(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
		print_counts();
		return failed > 0;
	}
#ifndef __SANITIZE_THREAD__ /* which knows no coroutines; there is one thread */
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (run_all(known[i].seed, 1)) {
			fprintf(stderr, "perhaps again: %s\n", known[i].defect);
			failed++;
		}
	failed += run_all(1, all ? MANY : FEW);
#endif
	printf("%d passed, %u failed\n", !failed, failed);
	return failed > 0;
}
