/* What systemd is told (sd_notify(3)): ready, reloading, stopping, a status line; and that the
 * watchdog need not bite, as long as there is progress.
 *
 * Progress is: the event loop turns (a timer of the loop feeds the watchdog), and work that a
 * device could do gets done:
 *
 *   - while tiles wait for a device, one comes back from a device, well or not, within tile-timeout
 *     and PROGRESS_MARGIN: by then a device that hangs has been killed, and its tiles are back;
 *   - while jobs are open, a tile comes back or a job ends within job-timeout and PROGRESS_MARGIN.
 *
 * While no device is up nothing is asked of the queue: tiles that wait then fail by themselves. If
 * work stalls nonetheless the front has lost track of it; the watchdog is no longer fed, and
 * systemd starts the service again. */
#ifndef FRONT_NOTIFY_H
#define FRONT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "front/config/config.h"

enum { PROGRESS_MARGIN = 15 }; /* seconds */

/* What is to be done at a moment, and what has been done since the start. */
struct work {
	unsigned devices_up, jobs, tiles_waiting;
	uint64_t tiles_back, jobs_ended;
};

/* Since when (loop_now()) there is work without progress: at first, since the start. */
struct progress {
	uint64_t tiles_back, jobs_ended;
	uint64_t tiles_since, jobs_since;
};

/* Notes the work of this moment. False: it has stalled for longer than the limits, in ns. */
bool progress_note(struct progress *progress, const struct work *work, uint64_t now,
                   uint64_t tile_limit, uint64_t job_limit);

/* Starts the status line, written anew at most once a second and only when it has changed, and the
 * feeding of the watchdog, if systemd wants that. */
enum error notify_init(const struct config *config) MUST_CHECK;
void notify_fini(void);

void notify_ready(void);
void notify_reloading(void);
/* Asks for as much time as drain-timeout allows, whatever the unit says. */
void notify_stopping(void);

#endif
