/* Notifications to systemd; without NOTIFY_SOCKET, sd_notify() does nothing. */
#include "front/notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "base/loop.h"
#include "front/config/config.h"
#include "front/jobs/job.h"
#include "front/workers/device_table.h"
#include "front/workers/scheduler.h"

enum {
	STOP_MARGIN = 15, /* seconds */
	STATUS_MS = 1000,
	FEEDS = 4, /* per watchdog timeout */
};

static struct loop_timer status_timer, watchdog;
static struct progress progress;
static bool stalled, stopping;
static char status[160];
static uint64_t last_ended, last_time;

static struct work work_now(void)
{
	return (struct work){.devices_up = devices_up(),
	                     .jobs = jobs_count().open,
	                     .tiles_waiting = scheduler_waiting(),
	                     .tiles_back = scheduler_returned(),
	                     .jobs_ended = jobs_count().ended};
}

/* Returns true if work has not moved since *since for longer than the limit. */
static bool has_stalled(uint64_t *since, bool moves, uint64_t now, uint64_t limit)
{
	if (moves)
		*since = now;
	return now - *since > limit;
}

bool progress_note(struct progress *p, const struct work *work, uint64_t now, uint64_t tile_limit,
                   uint64_t job_limit)
{
	bool tiles = work->tiles_back != p->tiles_back;
	bool jobs = work->jobs_ended != p->jobs_ended;
	bool still;

	still = has_stalled(&p->tiles_since, tiles || !work->devices_up || !work->tiles_waiting,
	                    now, tile_limit);
	still |= has_stalled(&p->jobs_since, tiles || jobs || !work->devices_up || !work->jobs, now,
	                     job_limit);
	p->tiles_back = work->tiles_back;
	p->jobs_ended = work->jobs_ended;
	return !still;
}

static void feed(void *)
{
	struct work work = work_now();

	if (progress_note(&progress, &work, loop_now(),
	                  (config->tile_timeout + PROGRESS_MARGIN) * 1000000000u,
	                  (config->job_timeout + PROGRESS_MARGIN) * 1000000000u)) {
		stalled = false;
		sd_notify(0, "WATCHDOG=1");
		return;
	}
	if (!stalled)
		log_error("work has stalled: %u jobs open, %u tiles waiting, %u devices up, no "
		          "progress; the watchdog is no longer fed",
		          work.jobs, work.tiles_waiting, work.devices_up);
	stalled = true;
}

static void tell_status(void *)
{
	struct work work = work_now();
	uint64_t now = loop_now();
	double seconds = (double)(now - last_time) * 1e-9;
	char line[sizeof status];

	snprintf(line, sizeof line,
	         "STATUS=%s%u of %u devices up, %u jobs (%u tiles waiting), %.1f images/s",
	         stopping ? "Stopping: " : "", work.devices_up, devices_wanted(), work.jobs,
	         work.tiles_waiting,
	         seconds > 0 ? (double)(work.jobs_ended - last_ended) / seconds : 0);
	last_ended = work.jobs_ended;
	last_time = now;
	if (!strcmp(line, status))
		return;
	memcpy(status, line, sizeof status);
	sd_notify(0, status);
}

enum error notify_init(void)
{
	uint64_t limit_us = 0;
	enum error e = loop_timer_init(&status_timer, tell_status, NULL);

	if (!e)
		e = loop_timer_init(&watchdog, feed, NULL);
	if (e)
		return e;
	last_time = progress.tiles_since = progress.jobs_since = loop_now();
	if (getenv("NOTIFY_SOCKET"))
		loop_timer_repeat(&status_timer, STATUS_MS);
	if (sd_watchdog_enabled(0, &limit_us) > 0)
		loop_timer_repeat(&watchdog, limit_us / FEEDS / 1000 + 1);
	return ERR_OK;
}

void notify_fini(void)
{
	loop_timer_fini(&status_timer);
	loop_timer_fini(&watchdog);
}

void notify_ready(void)
{
	sd_notify(0, "READY=1");
}

void notify_reloading(void)
{
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, loop_now() / 1000);
}

void notify_stopping(void)
{
	uint64_t seconds = config->drain_delay + config->drain_timeout + STOP_MARGIN;

	stopping = true;
	sd_notifyf(0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64, seconds * 1000000);
}
