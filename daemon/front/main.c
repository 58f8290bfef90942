/* convolved: the front. One thread's event loop serves clients, codec workers and devices. */
#include <glib.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/errand.h"
#include "base/log.h"
#include "base/loop.h"
#include "front/agent.h"
#include "front/api/async.h"
#include "front/api/gauges.h"
#include "front/api/outcome.h"
#include "front/api/presets.h"
#include "front/api/remote.h"
#include "front/api/representation.h"
#include "front/api/routes.h"
#include "front/api/tokens.h"
#include "front/base/log_writer.h"
#include "front/base/metrics.h"
#include "front/config/load.h"
#include "front/http_workers.h"
#include "front/jobs/admission.h"
#include "front/jobs/archive.h"
#include "front/jobs/job.h"
#include "front/jobs/shares.h"
#include "front/jobs/store.h"
#include "front/listeners.h"
#include "front/notify.h"
#include "front/workers/canary.h"
#include "front/workers/codecs.h"
#include "front/workers/discovery.h"
#include "front/workers/scheduler.h"
#include "front/workers/supervisor.h"
#include "front/workers/tracer.h"
#include "process/start.h"

enum { DRAIN_CHECK_MS = 20, LAST_ANSWERS_NS = 500000000 };

static struct config settings;
static int argument_count;
static char **arguments;
static struct loop_watch signals;
static struct loop_timer drain;
static uint64_t drain_closes; /* loop_now(), when no more connections are accepted; 0: no drain */
static bool drain_closed, drain_over;

static void log_configure(void)
{
	log_init("convolved", (enum log_level)(LOG_LEVEL_ERROR + config->log_level),
	         (enum log_format)config->log_format);
}

/* Logs to standard error from now on: the journal cannot attribute entries of a process that has
 * exited, but it knows the unit of a line on standard error. */
static void last_words(void)
{
	log_set_journal(NULL);
}

static void drain_check(void *)
{
	const struct store_survey survey = store_survey();
	uint64_t now = loop_now(), limit = config->drain_timeout * 1000000000u, waited;

	if (now < drain_closes)
		return;
	if (!drain_closed)
		listeners_drain();
	drain_closed = true;
	waited = now - drain_closes;
	/* Jobs of the archive go on after the restart. */
	if (!drain_over && remotes_drained() && jobs_count().open <= survey.lasting &&
	    !survey.changes) {
		outcome_tell_refusals();
		last_words();
		log_notice("stopped");
		loop_stop();
	} else if (!drain_over && waited > limit) {
		last_words();
		log_warning("stopped with %u requests unfinished", remotes_requests());
		remotes_end();
		drain_over = true;
	} else if (drain_over && (!remotes_requests() || waited > limit + LAST_ANSWERS_NS)) {
		loop_stop();
	}
}

/* A second call ends drain-delay. */
static void start_drain(void)
{
	uint64_t now = loop_now();

	if (drain_closes) {
		drain_closes = now < drain_closes ? now : drain_closes;
		return;
	}
	log_notice("stopping: %u requests to finish", remotes_requests());
	notify_stopping();
	drain_closes = now + config->drain_delay * 1000000000u;
	canary_stop();
	routes_drain();
	agent_drain();
	drain_check(NULL);
	loop_timer_repeat(&drain, DRAIN_CHECK_MS);
}

/* Logs if file descriptors allow fewer connections than configured: further connections are refused
 * before the descriptors run out. */
static void check_connections(void)
{
	uint64_t max = share_connections_most();

	if (max < config->max_connections)
		log_notice(
		    "max-connections is %" PRIu64 ", but only %" PRIu64
		    " connections are possible, half of the file descriptors (LimitNOFILE=, ulimit "
		    "-n)",
		    config->max_connections, max);
}

/* Checks what the options of a configuration name. */
static bool check(const struct config *c)
{
	const bool valid = presets_check(c);

	return listeners_read(c) && valid;
}

/* Applies the changes in the configuration. Accepted work is never dropped: new limits apply to new
 * requests, and surplus workers first finish their jobs. */
static void reload(void)
{
	struct config read;
	bool valid;

	notify_reloading();
	log_notice("SIGHUP: reloading the configuration");
	valid = config_load(&read, argument_count, arguments) == CONFIG_RUN && check(&read);
	gauges_reloaded(valid);
	if (valid) {
		config_exchange(&settings, &read);
		listeners_commit();
		http_workers_limit();
		log_configure();
		check_connections();
		codecs_reload();
		representations_fini();
		discovery_reload();
		log_notice("the configuration has been read again");
	} else {
		log_error("the configuration stays as it was");
	}
	config_fini(&read);
	notify_ready();
}

static void signal_received(void *)
{
	struct signalfd_siginfo info;

	if (read(signals.fd, &info, sizeof info) != sizeof info)
		return;
	if (info.ssi_signo != SIGHUP)
		start_drain();
	else if (!drain_closes)
		reload();
}

/* Called first in main(), too: a signal during startup stays pending until the loop runs. */
static sigset_t block_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN); /* somebody breaks a lease */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return set;
}

static enum error signals_init(void)
{
	sigset_t set = block_signals();
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

	if (loop_adopt(&signals, fd, EPOLLIN, signal_received, NULL))
		return ERR_IO;
	return loop_timer_init(&drain, drain_check, NULL);
}

static void signals_fini(void)
{
	loop_timer_fini(&drain);
}

/* Raises the soft limits: descriptors serve clients; devices pin the arenas in locked memory. */
static void raise_limits(void)
{
	static const __rlimit_resource_t resources[] = {RLIMIT_NOFILE, RLIMIT_MEMLOCK};
	struct rlimit limit;

	for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
		if (getrlimit(resources[i], &limit))
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resources[i], &limit);
	}
}

static enum error make_directories(void)
{
	const char *const paths[][2] = {{"cache-dir", config->cache_dir},
	                                {"state-dir", config->state_dir}};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		if (g_mkdir_with_parents(paths[i][1], 0700) || access(paths[i][1], W_OK | X_OK)) {
			log_error("%s=%s: expected a writable directory: %m", paths[i][0],
			          paths[i][1]);
			return ERR_IO;
		}
	return ERR_OK;
}

/* Starts the modules that have nothing to open. */
static enum error prepare(void)
{
	listeners_commit();
	admission_init();
	check_connections();
	gauges_init();
	return ERR_OK;
}

static enum error init_store(void)
{
	static const struct store_owner owner = {outcome_record, async_pack, routes_revive};

	return store_init(&owner);
}

/* The service's parts, started in this order and finished in reverse. Functions may be missing. */
static const struct part {
	enum error (*init)(void);
	void (*fini)(void);
} parts[] = {
    {.fini = metrics_fini},
    {.init = make_directories},
    {.init = loop_init, .fini = loop_fini},
    {.init = log_writer_init, .fini = log_writer_fini},
    {.init = signals_init, .fini = signals_fini},
    {.init = archive_init},
    {.init = errands_init, .fini = errands_fini},
    {.init = prepare, .fini = listeners_fini},
    {.fini = representations_fini},
    {.init = supervisor_init, .fini = supervisor_fini},
    {.init = tracer_init, .fini = tracer_fini},
    {.init = agent_init, .fini = agent_fini},
    {.init = listeners_init},
    {.init = scheduler_init, .fini = scheduler_fini},
    {.init = init_store, .fini = store_fini},
    {.init = canary_init, .fini = canary_fini},
    {.init = notify_init, .fini = notify_fini},
    {.init = outcome_init, .fini = outcome_fini},
    /* The last, as clients are closed first. */
    {.init = http_workers_init, .fini = http_workers_fini},
};

enum { PARTS = sizeof parts / sizeof *parts };

static unsigned parts_started;

static int turn(void)
{
	bool more = remotes_turn();

	errands_turn();
	return more ? 0 : -1;
}

int main(int argc, char **argv)
{
	enum config_result result;
	enum error e = ERR_OK;

	signals_reset();
	block_signals();
	argument_count = argc;
	arguments = argv;
	config = &settings;
	log_init("convolved", LOG_LEVEL_INFO, LOG_FORMAT_AUTO);
	result = config_load(&settings, argc, argv);
	if (result == CONFIG_HASH_TOKEN)
		result = tokens_print_hash() ? CONFIG_EXIT : CONFIG_INVALID;
	if (result == CONFIG_RUN && !check(&settings))
		result = CONFIG_INVALID;
	if (result == CONFIG_RUN && !config->check_only) {
		log_configure();
		raise_limits();
		for (; !e && parts_started < PARTS; parts_started += !e)
			if (parts[parts_started].init)
				e = parts[parts_started].init();
		if (e) {
			log_error("cannot start: %s", error_row(e)->title);
		} else {
			log_writer_use_journal();
			notify_ready();
			loop_run(turn);
			e = supervisor_mismatched() ? ERR_INTERNAL : ERR_OK;
		}
		while (parts_started)
			if (parts[--parts_started].fini)
				parts[parts_started].fini();
	}
	config_fini(&settings);
	return result == CONFIG_INVALID ? EX_CONFIG : e ? 1 : 0;
}
