/* The tiles that wait for a lane, in order of arrival. Some also wait for a program. */
#ifndef DEVICE_TILE_QUEUE_H
#define DEVICE_TILE_QUEUE_H

#include "device/cl/memory.h"
#include "device/lane.h"
#include "device/plans.h"
#include "wire/wire.h"

struct queued_tile;

struct tile_queue {
	struct queued_tile *first, **last;
	struct queued_tile *over; /* removed, but reported as waiting for a program */
	uint32_t count;
};

/* Makes an empty queue. */
void tile_queue_init(struct tile_queue *queue);
/* Discards all tiles without an answer. */
void tile_queue_fini(struct tile_queue *queue);

/* Adds a tile. now_ms: its time of arrival, in milliseconds of the clock that tile_queue_next()
 * uses. ERR_MEMORY. */
enum error tile_queue_add(struct tile_queue *queue, const struct message_tile *tile,
                          uint64_t now_ms) MUST_CHECK;

/* Removes the first tile that can start, with its plan up to date, or that has waited too long for
 * a program (*late). False if there is none. */
bool tile_queue_next(struct tile_queue *queue, struct plans *plans, struct programs *programs,
                     uint64_t now_ms, struct message_tile *tile, bool *late);

/* Returns a tile that waits for a program, and its maximum wait in milliseconds; each tile once.
 * False if there is none. */
bool tile_queue_lacking(struct tile_queue *queue, struct message_tile *tile, uint32_t *wait_ms);

/* Returns a tile that tile_queue_lacking() reported and that has been removed; each tile once,
 * before it is answered. False if there is none. */
bool tile_queue_over(struct tile_queue *queue, struct message_tile *tile);

/* Removes queued tiles of plan `id` that may be in one stack with tiles[0] and appends them, up to
 * `max` tiles in all, and if they are JPEGs so many bytes of scans. Sorts them so that neighbours
 * in an arena are neighbours here. Returns their number, at least 1. */
uint32_t tile_queue_stack(struct tile_queue *queue, const struct arenas *arenas, uint64_t id,
                          const struct plan *plan, uint32_t max, uint64_t scans,
                          struct lane_tile tiles[STACK_MAX]);

#endif
