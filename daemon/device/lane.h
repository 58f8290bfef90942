/* A lane: one tile at a time on its way through the device. Lanes overlap with each other. */
#ifndef DEVICE_LANE_H
#define DEVICE_LANE_H

#include "common/wire.h"
#include "device/memory.h"
#include "device/plan.h"

struct lane;

/* Makes a lane on a device, which must outlive it. zero_copy: kernels work in
 * the registered arenas themselves, else tiles are copied to the device and back. notify_fd: an
 * eventfd that is written when a tile is through. ERR_DEVICE or ERR_MEMORY on failure. */
enum error lane_new(const struct device *device, bool zero_copy, int notify_fd,
                    struct lane **lane) MUST_CHECK;
/* Waits for a tile that is under way, whose answer is then lost. NULL is allowed; the pointer
 * becomes NULL. */
void lane_free(struct lane **lane);

/* True if the lane has no tile. */
bool lane_idle(const struct lane *lane);

/* Starts a tile that tile_valid() has passed; plan and arena must stay until it is finished.
 * Returns an OpenCL code; on failure the lane is idle again and nothing is under way. Between the
 * rows of the result the bytes up to out_pitch are undefined unless zero_copy. */
cl_int lane_start(struct lane *lane, const struct plan *plan, const struct tile *tile,
                  const struct device_arena *arena) MUST_CHECK;

/* True if the lane's tile is through, or has failed. */
bool lane_finished(const struct lane *lane);

/* Fills in the answer for a finished tile; the lane is then idle. */
void lane_finish(struct lane *lane, struct message_tile_done *done);

#endif
