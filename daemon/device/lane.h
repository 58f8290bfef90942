/* A lane: a tile of a plan, or a stack of them, in flight on the device. Several run at once. */
#pragma once

#include "device/cl/opencl.h"
#include "device/jpeg.h"
#include "device/plan/plan.h"
#include "device/pool.h"
#include "wire/wire.h"

struct lane;

/* A tile, and its arena. */
struct lane_tile {
	struct tile tile;
	const struct device_arena *arena;
	const struct jpeg_work *work; /* with scans: by jpeg_work_take() */
};

/* Makes a lane on a device, which must outlive it. pool: kernels work directly in the registered
 * arenas, tiles of pixels through this pool, whose eventfd reports their end; NULL: tiles are
 * copied to the device and back. ERR_DEVICE or ERR_MEMORY. */
enum error lane_new(const struct device *device, struct pool *pool, struct lane **lane) MUST_CHECK;
/* Waits for tiles in flight, without answers. NULL is allowed; the pointer becomes NULL. */
void lane_free(struct lane **lane);

/* Returns true if the pool reports the end of the lane's tiles; other lanes must be polled. */
bool lane_notifies(const struct lane *lane);

/* Lets a lane take tiles with scans. memory: device memory in bytes. The programs outlive it. */
void lane_allow_jpeg(struct lane *lane, struct programs *programs, uint64_t memory);
/* See jpeg_lane_room(); only copied pixels are stacked. */
uint32_t lane_jpeg_room(const struct lane *lane, const struct plan *plan, const struct tile *tile,
                        uint64_t *scans);
/* Releases the buffers of an idle lane, which are made again when needed. lane_trim(): only scratch
 * buffers of more than `max` bytes. */
void lane_rest(struct lane *lane);
void lane_trim(struct lane *lane, uint64_t max);

/* True if these tiles of one plan may be in one stack. */
bool lane_stacks(const struct plan *plan, const struct tile *a, const struct tile *b);

/* Starts valid tiles: one; on a lane that copies, up to STACK_MAX of one stack; with scans, on any
 * lane, as many as lane_jpeg_room() allows. Plan and arenas must outlive them, `work` need not.
 * Returns an OpenCL code; on failure the lane is idle. Without a pool, bytes between the end of a
 * result's row and out_pitch are undefined afterwards. */
cl_int lane_start(struct lane *lane, const struct plan *plan, const struct lane_tile *tiles,
                  uint32_t count) MUST_CHECK;

/* True if the lane has tiles and they have finished or failed. Does not wait. When the size of
 * encoded scans is known this enqueues their copies. */
bool lane_finished(struct lane *lane);

/* Waits until all enqueued commands have finished or failed. */
void lane_wait(struct lane *lane);

/* Answers each tile that lane_finished() reported; returns their number. The lane is then idle. */
uint32_t lane_finish(struct lane *lane, struct message_tile_done done[STACK_MAX]);

/* ---- places and memory of tiles with scans (jpeg_lane.c) ---- */

enum {
	JPEG_PIXEL_BYTES = 64,     /* device memory for a pixel of RGB, with a scratch buffer */
	JPEG_PIXELS_MAX = 1 << 28, /* per image */
};

/* The positions of a stack's tiles in a lane's buffers, and the parts of an arena that a tile of
 * pixels reads and writes, in bytes. A scan's side gets the pitch of pixels. */
struct lane_layout {
	uint32_t in_pitch, out_pitch; /* from row to row */
	/* Rows from tile to tile: those of a tile and its halo, and up to a row of alignment. */
	uint32_t distance;
	uint64_t row, result_row; /* lengths of a row, with halo and without */
	uint64_t halo;            /* from the first pixel with halo to the first that is filtered */
	uint64_t image;           /* before a decoded image: a multiple of 8 */
	uint64_t result;          /* before the first pixel that is filtered */
	/* Kernels load aligned words, so the read part is rounded outwards. */
	uint64_t in, out;
};

struct lane_layout lane_layout(const struct plan *plan, const struct tile *tile);

/* Returns the size in bytes of each scratch buffer that a plan needs for a tile, or for a stack of
 * that height; 0 for other places. */
void jpeg_lane_scratch(const struct plan *plan, const struct tile *high, uint64_t size[PLACES]);

/* Copies the jpeg_work of a tile from memory that others may change, and checks the copy: each side
 * that is a scan must be valid and belong to the plan's image. The original is not read again. */
bool jpeg_work_take(struct jpeg_work *work, const void *from, const struct tile *tile,
                    const struct plan *plan) MUST_CHECK;

/* The encoding of a stack's i-th image. */
struct jpeg_encode_job jpeg_lane_job(const struct plan *plan, const struct tile *tile,
                                     const struct jpeg_target *target, uint32_t i);

/* All zeros: takes no JPEG. */
struct jpeg_lane {
	struct programs *programs;
	uint64_t memory;           /* bytes of device memory that a lane may use for JPEGs */
	uint64_t held[PLACES + 1]; /* memory that buffers have grown to: places, pair */
};

/* Returns the number of a plan's images that fit into the lane's memory as a stack; 0: not even
 * one, or programs are missing. *scans: bytes that their scans may have together. */
uint32_t jpeg_lane_room(const struct jpeg_lane *lane, const struct plan *plan,
                        const struct tile *tile, uint64_t *scans);

/* Counts the sizes to which a stack makes the buffers grow. Returns false, with nothing counted, if
 * that is too much beside their present sizes: the caller then releases them first. */
bool jpeg_lane_hold(struct jpeg_lane *lane, const struct plan *plan, const struct tile *tile,
                    uint32_t count) MUST_CHECK;
