/* The conditions that hold at each step, and those that hold when nothing is left to do. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "front/api/remote.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/jobs/job.h"
#include "front/jobs/shares.h"
#include "front/jobs/spool.h"
#include "front/jobs/store.h"
#include "front/workers/device_table.h"
#include "front/workers/runs.h"
#include "front/workers/scheduler.h"
#include "sim.h"

/* SHARES_EVERY: turns, as that takes long. */
enum { SHARES_EVERY = 64, MEMORY_BEYOND = 2 << 20 };

/* ---- steps ---- */

static void check_tasks(void)
{
	unsigned of_codecs = 0, away_or_waiting = scheduler_waiting();
	const struct codec *c;
	const struct device *d;

	for (unsigned i = 0; (c = codec_get(i)); i++) {
		must(c->tasks <= SLOTS_MAX);
		must(!c->job || job_tiles_done(c->job) <= job_tiles(c->job));
		of_codecs += c->tasks;
	}
	for (unsigned i = 0; (d = device_get(i)); i++) {
		must(d->held_count <= WINDOW_MAX);
		away_or_waiting += d->held_count;
	}
	if (of_codecs != away_or_waiting)
		violated("codecs await %u tiles, %u are at devices or wait for one", of_codecs,
		         away_or_waiting);
}

static void check_shares(void)
{
	for (enum share_kind kind = 0; kind < SHARE_KINDS; kind++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < SIM_NAMES; i++)
			sum += share_of(kind, sim_names[i]);
		sum += share_of(kind, "");
		if (sum != share_total(kind))
			violated("clients hold %lu of kind %d, all together %lu", sum, kind,
			         share_total(kind));
	}
	/* A reload may have lowered it. */
	must(share_total(SHARE_BODIES) <= config->max_bodies || sim_faults[FAULT_RELOAD]);
	must(share_total(SHARE_CONNECTIONS) <= share_connections_most());
}

void check_step(void)
{
	if (!config)
		return;
	check_tasks();
	if (sim_turns() % SHARES_EVERY == 0)
		check_shares();
	if (spool_use().memory > config->max_memory + MEMORY_BEYOND)
		violated("bodies and answers take %lu bytes of at most %lu", spool_use().memory,
		         config->max_memory);
	check_answers_step();
}

void check_idle(void)
{
	for (enum share_kind kind = 0; kind < SHARE_KINDS; kind++)
		if (share_total(kind))
			violated("%lu of share %d are still held", share_total(kind), kind);
	must(!spool_use().memory);
	must(!spool_use().in_files && !spool_use().in_memory);
	must(!remotes_requests());
	must(!scheduler_waiting());
	must(!jobs_count().waiting);
	must(metric_value(METRIC_CONNECTIONS, NULL, NULL) == 0);
	must(metric_value(METRIC_REQUESTS, NULL, NULL) == 0);
	check_work_idle();
}

void check_reset(void)
{
	check_work_reset();
	check_answers_reset();
}

/* ---- the archive ---- */

enum { KNOWN_MAX = 64, ID_SIZE = 64 };

/* Shared with the process of the service's second life. */
static struct {
	uint64_t at; /* when it has crashed */
	unsigned count;
	char id[KNOWN_MAX][ID_SIZE];
} * known;

void check_share(void)
{
	known =
	    mmap(NULL, sizeof *known, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(known != MAP_FAILED);
}

void check_crash(void)
{
	known->at = sim_now;
	known->count = 0;
	for (const struct stored *s = store_next(NULL); s && known->count < KNOWN_MAX;
	     s = store_next(s))
		snprintf(known->id[known->count++], ID_SIZE, "%s", s->id);
}

uint64_t check_crashed_at(void)
{
	return known->at;
}

static bool is_known(const struct stored *s)
{
	unsigned i = 0;

	while (i < known->count && strcmp(known->id[i], s->id))
		i++;
	return i < known->count;
}

/* Returns true if a job was removed at the start since one that had been forgotten is back, as that
 * was not on disk yet; but its client's older results go first. */
static bool is_displaced(const struct stored *s)
{
	bool some_back = false;

	for (const struct stored *other = store_next(NULL); other; other = store_next(other)) {
		if (other->job->answer.size && stored_is_of(other, &s->job->terms) &&
		    other->record.finished <= s->record.finished)
			return false;
		some_back |= other->job->finished && !is_known(other);
	}
	return some_back;
}

void check_recovery(void)
{
	for (unsigned i = 0; i < known->count; i++) {
		const struct stored *s = store_find_any(known->id[i]);

		if (!s || (!stored_is_shown(s) && !is_displaced(s)))
			violated("the job %s is lost", known->id[i]);
	}
	sim_counts[COUNT_RECOVERED] += known->count;
}

/* ---- the log ---- */

void __wrap_log_event(enum log_level level, const struct log_fields *fields, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));

void __wrap_log_event(enum log_level level, const struct log_fields *fields, const char *format,
                      ...)
{
	char text[1024];
	va_list list;

	(void)level, (void)fields;
	sim_counts[COUNT_QUARANTINES] += strstr(format, "is quarantined") != NULL;
	if (!sim_tracing)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	sim_trace("log: %s", text);
}

enum error __wrap_log_writer_init(void);

enum error __wrap_log_writer_init(void)
{
	return ERR_OK;
}

void __wrap_log_writer_fini(void);

void __wrap_log_writer_fini(void)
{
}

void __wrap_log_writer_use_journal(void);

void __wrap_log_writer_use_journal(void)
{
}
