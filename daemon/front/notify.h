/* Notifications to systemd (sd_notify(3)): ready, reloading, stopping, a status line, and the
 * watchdog, which a timer of the loop feeds while work progresses. While a device is up, that
 * means:
 *
 *   - if tiles wait for a device, one comes back, filtered or failed, within tile-timeout +
 *     PROGRESS_MARGIN: a hung device has been killed by then;
 *   - if jobs are open, a tile comes back or a job ends within job-timeout + PROGRESS_MARGIN.
 *
 * Otherwise the front has lost track of it, and systemd restarts the service. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { PROGRESS_MARGIN = 15 }; /* seconds */

/* A snapshot of open work, and of work done since the start. */
struct work {
	unsigned devices_up, jobs, tiles_waiting;
	uint64_t tiles_back, jobs_ended;
};

/* State of progress_note(): the counters at the last call, and the time (loop_now()) when each kind
 * of work last progressed or had nothing to do; initially the start. */
struct progress {
	uint64_t tiles_back, jobs_ended;
	uint64_t tiles_since, jobs_since;
};

/* Compares the work with the last call's. Returns false if it has stalled for longer than the
 * limits. Times are in nanoseconds. */
bool progress_note(struct progress *progress, const struct work *work, uint64_t now,
                   uint64_t tile_limit, uint64_t job_limit);

/* Starts the status line, which is sent when it has changed, at most once a second, and feeds the
 * watchdog if systemd wants that. */
enum error notify_init(void) MUST_CHECK;
void notify_fini(void);

void notify_ready(void);
void notify_reloading(void);
/* Also asks systemd for drain-timeout and some seconds more, regardless of TimeoutStopSec=. */
void notify_stopping(void);
