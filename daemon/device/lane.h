/* A lane: a tile of a plan, or a stack of them, in flight on the device. Several lanes run at the
 * same time. */
#ifndef DEVICE_LANE_H
#define DEVICE_LANE_H

#include "device/jpeg_lane.h"
#include "device/pool.h"
#include "wire/wire.h"

struct lane;

/* Makes a lane on a device, which must outlive it. pool: kernels work directly in the registered
 * arenas, tiles of pixels by this pool, whose eventfd tells when they have finished; NULL: tiles
 * are copied to the device and back. ERR_DEVICE or ERR_MEMORY. */
enum error lane_new(const struct device *device, struct pool *pool, struct lane **lane) MUST_CHECK;
/* Waits for tiles in flight and discards their answers. NULL is allowed; the pointer becomes
 * NULL. */
void lane_free(struct lane **lane);

/* True if the lane's tiles are the pool's; others must be looked at. */
bool lane_notifies(const struct lane *lane);

/* Lets a lane take tiles with scans, with so many bytes of device memory. The programs must outlive
 * it. */
void lane_allow_jpeg(struct lane *lane, struct programs *programs, uint64_t memory);
/* See jpeg_lane_room(); only copied pixels are stacked. */
uint32_t lane_jpeg_room(const struct lane *lane, const struct plan *plan, const struct tile *tile,
                        uint64_t *scans);
/* Releases the buffers of an idle lane; they are made again when they are needed. lane_trim():
 * only scratch buffers of more than `max` bytes. */
void lane_rest(struct lane *lane);
void lane_trim(struct lane *lane, uint64_t max);

/* True if the lane has no tiles in flight. */
bool lane_idle(const struct lane *lane);

/* True if these tiles of one plan may be in one stack. */
bool lane_stacks(const struct plan *plan, const struct tile *a, const struct tile *b);

/* Starts valid tiles: one, or on a lane that copies up to STACK_MAX of one stack; with scans, on
 * any lane, as many as lane_jpeg_room() says. Plan and arenas must outlive them, `work` need not.
 * Returns an OpenCL code; on failure the lane is idle. Without a pool, bytes between the end of a
 * result's row and out_pitch are undefined afterwards. */
cl_int lane_start(struct lane *lane, const struct plan *plan, const struct lane_tile *tiles,
                  uint32_t count) MUST_CHECK;

/* True if the lane's tiles have finished or failed. Does not wait. When the size of encoded scans
 * is known this enqueues their copies. */
bool lane_finished(struct lane *lane);

/* Waits until everything that is enqueued has finished or failed. */
void lane_wait(struct lane *lane);

/* Fills in the answer to each tile that lane_finished() reported and returns their number. The lane
 * is then idle. */
uint32_t lane_finish(struct lane *lane, struct message_tile_done done[STACK_MAX]);

#endif
