/* A lane: one tile of a plan, or a stack of them, in flight on the device. Lanes overlap with each
 * other. */
#ifndef DEVICE_LANE_H
#define DEVICE_LANE_H

#include "common/wire.h"
#include "device/cl/memory.h"
#include "device/plan/plan.h"

struct lane;

/* A tile, and its arena. */
struct lane_tile {
	struct tile tile;
	const struct device_arena *arena;
};

/* Makes a lane on a device, which must outlive it. zero_copy: kernels work directly in the
 * registered arenas; otherwise tiles are copied to the device and back. ERR_DEVICE or ERR_MEMORY on
 * failure. */
enum error lane_new(const struct device *device, bool zero_copy, struct lane **lane) MUST_CHECK;
/* Waits for tiles in flight and discards their answers. NULL is allowed; the pointer becomes
 * NULL. */
void lane_free(struct lane **lane);

/* True if the lane has no tiles. */
bool lane_idle(const struct lane *lane);

/* True if both tiles, of one plan, may go into one stack. */
bool lane_stacks(const struct plan *plan, const struct tile *a, const struct tile *b);

/* Starts tiles that tile_valid() has passed: one, or up to STACK_MAX that may go into one stack, of
 * a lane that copies. Plan and arenas must stay until they are finished. Returns an OpenCL code; on
 * failure the lane is idle again and nothing is under way. Between the rows of a result the bytes
 * up to out_pitch are undefined unless zero_copy. */
cl_int lane_start(struct lane *lane, const struct plan *plan, const struct lane_tile *tiles,
                  uint32_t count) MUST_CHECK;

/* Asks the driver whether the lane's tiles are finished or have failed. */
bool lane_finished(struct lane *lane);

/* Waits until they are. */
void lane_wait(struct lane *lane);

/* Fills in the answer for each finished tile; returns how many. The lane is then idle. */
uint32_t lane_finish(struct lane *lane, struct message_tile_done done[STACK_MAX]);

#endif
