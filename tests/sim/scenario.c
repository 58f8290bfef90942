/* The course of a seed: the faults that it has, a configuration, clients, the end of all faults,
 * and after a while, in which everything must come to rest, the end of the service. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "front/config/config.h"
#include "front/jobs/job.h"
#include "front/jobs/store.h"
#include "front/workers/device_table.h"
#include "front/workers/runs.h"
#include "sim.h"

int front_main(int argc, char **argv);
pid_t __real_waitpid(pid_t pid, int *status, int options);

enum {
	ARGUMENTS_MAX = 64,
	TEXT = 64,
	CLIENTS_MAX = 24,
	HERD = 500,
	REST_MS = 500,
	RESTS = 5,
	START_S = 60,
	RELOADS = 3,
	CRASHED = 77
};

/* All requests have been answered, and all results are forgotten, so long after the last fault; the
 * service has stopped so long after its drain-timeout. */
static const uint64_t rest_ns = 120 * SIM_S, stop_ns = 10 * SIM_S;

static char argument[ARGUMENTS_MAX][TEXT], first_argument[ARGUMENTS_MAX][TEXT];
static char *arguments[ARGUMENTS_MAX + 1];
static int argument_count;
static const char directory_format[] = "/dev/shm/sim.%d";
static char directory[TEXT];
static uint64_t started, calm_at, stop_at;
static unsigned resting, descriptors;
static bool is_first_life;

/* ---- configuration ---- */

static void add(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(const char *name, const char *format, ...)
{
	va_list list;

	must(argument_count + 2 <= ARGUMENTS_MAX);
	snprintf(argument[argument_count], TEXT, "--%s", name);
	va_start(list, format);
	vsnprintf(argument[argument_count + 1], TEXT, format, list);
	va_end(list);
	sim_trace("%s %s", argument[argument_count], argument[argument_count + 1]);
	argument_count += 2;
}

static uint64_t one_of(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t[]){a, b, c}[sim_below(3)];
}

/* Options that only a start changes are then ignored. */
static void configure(bool first)
{
	const bool big = sim_faults[FAULT_BIG_ANSWERS];

	argument_count = 0;
	snprintf(argument[argument_count++], TEXT, "convolved");
	add("listen", "127.0.0.1:0");
	add("cache-dir", "%s", directory);
	add("state-dir", "%s", directory);
	add("durable", "%s", sim_faults[FAULT_CRASH_FRONT] || sim_once_in(3) ? "yes" : "no");
	add("http-workers", "%lu", sim_between(1, 2));
	add("arena-size", "%luK", one_of(64, 256, 1024));
	add("device", "%s", first || sim_once_in(2) ? "*" : "*0");
	add("codecs", "%lu", sim_between(1, 4));
	add("max-bodies", "%lu", one_of(2, 8, 256));
	add("max-jobs", "%lu", one_of(2, 8, 256));
	add("max-wait", "%lu", one_of(2, 10, 60));
	add("max-memory", "%luM", one_of(1, 4, 64));
	add("spool-size", "%luK", one_of(1, 20, 1024));
	add("unread-size", "%luM", big ? 1 : one_of(1, 4, 64));
	add("unread-client-size", "%luM", big ? 1 : one_of(1, 4, 64));
	add("max-client-connections", "%lu", sim_faults[FAULT_HERD] ? 1000 : one_of(3, 100, 1000));
	add("client-share", "0.%lu", sim_between(3, 9));
	add("job-timeout", "%lu", one_of(3, 10, 40));
	add("tile-timeout", "%lu", one_of(2, 5, 20));
	add("start-timeout", "%lu", one_of(3, 10, 30));
	add("result-time", "%lu", sim_between(1, 20));
	add("result-count", "%lu", one_of(2, 10, 100));
	add("result-size", "%luK", one_of(4, 100, 10000));
	add("canary-interval", "%lu", one_of(1, 5, 10));
	add("quarantine-failures", "%lu", one_of(1, 2, 5));
	add("drain-timeout", "%lu", one_of(1, 5, 10));
	for (int i = 0; i < argument_count; i++)
		arguments[i] = argument[i];
	arguments[argument_count] = NULL;
	if (first)
		memcpy(first_argument, argument, sizeof argument);
}

/* ---- the course ---- */

bool scenario_accepts(void)
{
	return !stop_at;
}

static void count_most(enum count count, uint64_t value)
{
	if (value > sim_counts[count])
		sim_counts[count] = value;
}

void scenario_answered(uint64_t ns)
{
	count_most(COUNT_LONGEST, ns / SIM_MS);
}

/* Judges by the drain-timeout of now, since a reload may come before the signal. */
static void stop_is_late(void *context, uint64_t number)
{
	const uint64_t due = stop_at + config->drain_timeout * SIM_S + stop_ns;

	(void)context, (void)number;
	if (sim_now >= due)
		violated("the service has not stopped");
	sim_after(due - sim_now, stop_is_late, NULL, 0);
}

static void stop(void *context, uint64_t number)
{
	(void)context, (void)number;
	if (stop_at)
		return;
	sim_trace("the service is told to stop");
	stop_at = sim_now;
	sim_raise(SIGTERM);
	sim_after(stop_ns, stop_is_late, NULL, 0);
}

static bool are_all_up(void)
{
	unsigned up = 0;

	for (const struct process *p = sim_processes; p; p = p->next) {
		if (p->has_ended != p->is_reaped || (p->is_hung && !p->has_ended))
			return false;
		up += p->is_up && !p->has_ended;
	}
	return up == config->codecs + config->http_workers + sim_devices &&
	       devices_up() == sim_devices && sim_https() == config->http_workers;
}

static bool is_at_rest(void)
{
	const struct codec *c;

	for (unsigned i = 0; (c = codec_get(i)); i++)
		if (c->job || c->tasks) /* perhaps an ended job's */
			return false;
	return are_all_up() && !sim_clients() && !jobs_count().open && !store_survey().jobs &&
	       !store_survey().changes;
}

static void look(void *context, uint64_t number)
{
	char waits[256];

	(void)context, (void)number;
	if (stop_at)
		return; /* stop_is_late() judges */
	resting = is_at_rest() ? resting + 1 : 0;
	if (resting == RESTS) {
		sim_trace("everything is at rest");
		count_most(COUNT_REST, (sim_now - calm_at) / SIM_MS);
		check_idle();
		if (sim_descriptors() != descriptors)
			violated("%u descriptors are open, %u were before", sim_descriptors(),
			         descriptors);
		stop(NULL, 0);
		return;
	}
	if (sim_now > calm_at + rest_ns) {
		sim_clients_describe(waits, sizeof waits);
		violated(
		    "no rest after %lu s: %u clients, %u jobs, %u of %u devices up, %u stored; %s",
		    rest_ns / SIM_S, sim_clients(), jobs_count().open, devices_up(), sim_devices,
		    store_survey().jobs, waits);
	}
	sim_after(REST_MS * SIM_MS, look, NULL, 0);
}

static void reload(void *context, uint64_t number)
{
	(void)context, (void)number;
	if (sim_calm || stop_at)
		return;
	sim_trace("reload");
	configure(false);
	sim_raise(SIGHUP);
}

/* Ends this life of the service, a process of its own. */
static void crash(void *context, uint64_t number)
{
	(void)context, (void)number;
	if (stop_at)
		return;
	sim_trace("the service crashes");
	check_crash();
	fflush(stdout);
	_exit(CRASHED);
}

static void become_calm(void *context, uint64_t number)
{
	(void)context, (void)number;
	sim_trace("no more faults");
	if (sim_faults[FAULT_RELOAD]) {
		memcpy(argument, first_argument, sizeof argument);
		sim_raise(SIGHUP);
	}
	sim_calm = true;
	calm_at = sim_now;
	look(NULL, 0);
}

/* Everything has started, so that clients may come. */
static void begin(void *context, uint64_t number)
{
	const unsigned clients = (unsigned)sim_between(1, CLIENTS_MAX);
	const uint64_t time = (sim_faults[FAULT_BIG_ANSWERS] ? 1 : sim_between(1, 20)) * SIM_S;

	(void)context, (void)number;
	sim_calm = true;
	resting = are_all_up() ? resting + 1 : 0;
	if (resting < RESTS) {
		must(sim_now < started + START_S * SIM_S);
		sim_after(SIM_MS, begin, NULL, 0);
		return;
	}
	resting = 0;
	descriptors = sim_descriptors();
	sim_calm = false;
	for (unsigned i = 0; i < clients; i++)
		sim_client_begin(sim_below(time), false);
	for (unsigned i = 0; sim_faults[FAULT_HERD] && i < HERD; i++)
		sim_client_begin(time / 2 + sim_below(SIM_MS), true);
	sim_after(sim_between(time, 2 * time), become_calm, NULL, 0);
	if (sim_faults[FAULT_EARLY_STOP])
		sim_after(sim_below(2 * time), stop, NULL, 0);
	for (unsigned i = 0; sim_faults[FAULT_RELOAD] && i < RELOADS; i++)
		sim_after(sim_below(time), reload, NULL, 0);
	if (is_first_life)
		sim_after(sim_below(2 * time), crash, NULL, 0);
}

static void empty_directory(const char *path)
{
	DIR *all = opendir(path);
	struct dirent *entry;
	char name[512];

	while (all && (entry = readdir(all))) {
		if (*entry->d_name == '.')
			continue;
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		if (unlink(name)) {
			empty_directory(name);
			rmdir(name);
		}
	}
	if (all)
		closedir(all);
}

/* Those of the system. */
static unsigned count_real(void)
{
	enum { MOST = 64 };
	unsigned count = 0;

	for (int fd = 0; fd < MOST; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* The front's variables, as they are when it starts. */
extern uint64_t __start_sim_state[], __stop_sim_state[];
static uint64_t *first_state;

/* Copies pages that differ: most do not, and in a new process are not its own yet. Variables may
 * have a sanitizer's zones between them. */
__attribute__((no_sanitize("address"))) static void copy_state(uint64_t *to, const uint64_t *from)
{
	enum { PAGE_WORDS = 512 };
	const size_t words = (size_t)(__stop_sim_state - __start_sim_state);

	must((uintptr_t)__stop_sim_state % sizeof *to == 0);
	for (size_t at = 0, end; at < words; at = end) {
		uint64_t differs = 0;

		end = words - at < PAGE_WORDS ? words : at + PAGE_WORDS;
		for (size_t i = at; i < end; i++)
			differs |= to[i] ^ from[i];
		for (size_t i = at; differs && i < end; i++)
			if (to[i] != from[i])
				to[i] = from[i];
	}
}

static void prepare(void)
{
	first_state = calloc((size_t)(__stop_sim_state - __start_sim_state), sizeof *first_state);
	must(first_state);
	copy_state(first_state, __start_sim_state);
	sim_disk_init();
	check_share();
	snprintf(directory, sizeof directory, directory_format, (int)getpid());
	mkdir(directory, 0700);
}

void scenario_tidy(pid_t pid)
{
	snprintf(directory, sizeof directory, directory_format, (int)pid);
	empty_directory(directory);
	rmdir(directory);
}

static void look_for_jobs(void *context, uint64_t number)
{
	(void)context, (void)number;
	check_recovery();
}

/* Runs the service from its start to its end. */
static void live(void)
{
	/* That of signals, and those of errands, which may still use them. */
	enum { KEPT_DESCRIPTORS = 5 };
	const unsigned real = count_real();
	/* Some have faults from the start. Without descriptors it does not start. */
	const uint64_t faults =
	    sim_once_in(4) && !sim_faults[FAULT_NO_DESCRIPTOR] ? sim_below(5 * SIM_S) : 0;

	copy_state(__start_sim_state, first_state);
	sim_calm = !faults;
	started = sim_now;
	stop_at = calm_at = 0;
	resting = 0;
	sim_after(faults, begin, NULL, 0);
	must(!front_main(argument_count, arguments));
	sim_trace("the service has ended");
	must(!sim_clients());
	/* Those that the front has abandoned end after it. */
	for (struct process *p = sim_processes; p; p = p->next)
		if (p->is_killed)
			sim_exit(p, SIGKILL);
	if (sim_descriptors() != KEPT_DESCRIPTORS)
		violated("%u descriptors are open at the end", sim_descriptors());
	must(!sim_loop_timers());
	sim_disk_reset();
	/* Errands that the end interrupts leave some; the archive's directory stays. */
	must(count_real() <= real + 1 || sim_faults[FAULT_EARLY_STOP]);
	close_range(real, ~0u, 0);
}

/* Runs the service until it crashes or ends, in a process of its own. Returns true if it has
 * crashed. */
static bool live_once(void)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (!child) {
		is_first_life = true;
		live();
		_exit(0);
	}
	__real_waitpid(child, &status, 0);
	if (WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == CRASHED))
		return WEXITSTATUS(status);
	_exit(1);
}

void scenario_run(uint64_t seed)
{
	if (!first_state)
		prepare();
	sim_seed(seed);
	sim_loop_reset();
	sim_choose_faults();
	configure(true);
	sim_devices = (unsigned)sim_between(1, 3);
	sim_socket_room = 212992;
	sim_link_room = sim_faults[FAULT_SMALL_LINK] ? sim_between(1000, 50000) : 400000;
	if (sim_faults[FAULT_CRASH_FRONT] && live_once()) {
		sim_trace("the service starts again");
		sim_now = check_crashed_at() + sim_while(20 * SIM_S);
		sim_seed(seed ^ sim_now);
		sim_after(0, look_for_jobs, NULL, 0);
	}
	live();
	sim_threads_reset();
	sim_devices_reset();
	sim_clients_reset();
	check_reset();
	sim_workers_reset();
	sim_kernel_reset();
	empty_directory(directory);
	sim_counts[COUNT_SEEDS]++;
}
