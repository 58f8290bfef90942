/* The reports of a device's worker: the times of each tile, its tuner's choices, the programs it
 * has built, and its live OpenCL objects. Reports go to the metrics, the tile's job and the device
 * table. */
#pragma once

#include <stdbool.h>

#include "front/jobs/job.h"
#include "front/workers/device_table.h"

/* True if the fields of a device's READY are plausible. */
bool reports_ready_valid(const struct device *device, const struct message_ready *ready);

/* Resets the counts of a device's programs, whose new worker is up. Creates the device's counters,
 * so that Prometheus sees their first increase. */
void reports_begin(struct device *device);

/* Receives a report on the worker itself. False if the message is impossible or of another kind. */
bool reports_take(struct device *device, const struct message *message);

/* Counts a message other than MSG_TILE_DONE. Returns false if the worker sends too many. */
bool reports_in_bounds(struct device *device);

/* Checks MSG_TILE_DONE about a task that the device holds; or (NULL) about a test tile, whose times
 * and size are not used. */
bool reports_done_valid(const struct task *task, const struct message_tile_done *done);

/* Records a filtered tile in the metrics and its job, and updates the device's estimated speed. */
void reports_book(struct device *device, struct task *task, const struct message_tile_done *done);
