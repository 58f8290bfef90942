/* What a device's worker reports: of a tile how long everything took, of itself what its tuner has
 * chosen, what programs it has built and which OpenCL objects live. It goes to the metrics, to the
 * tile's job and to the device. */
#ifndef FRONT_WORKERS_REPORTS_H
#define FRONT_WORKERS_REPORTS_H

#include <stdbool.h>

#include "front/jobs/job.h"
#include "front/workers/device_table.h"

/* True if a device may say this of itself. */
bool reports_ready_valid(const struct device *device, const struct message_ready *ready);

/* The worker has come up: what the process before it had built no longer counts. The device's
 * counters exist from now on, so that their first increase is seen. */
void reports_begin(struct device *device);

/* The process has ended, and with it every object. */
void reports_end(struct device *device);

/* Takes what a worker says of itself. False: the message is of another kind, or cannot be true. */
bool reports_take(struct device *device, const struct message *message);

/* Counts a message that is not of a tile's end. False: there are more than a worker has reason for.
 */
bool reports_in_bounds(struct device *device);

/* True if a device may say this of a tile; and of this one, which it has. */
bool reports_tile_valid(const struct message_tile_done *done);
bool reports_cost_valid(const struct task *task, const struct message_tile_done *done);

/* Books a tile that was filtered to the metrics and its job; the device's speed is learnt from it.
 */
void reports_book(struct device *device, struct task *task, const struct message_tile_done *done);

#endif
