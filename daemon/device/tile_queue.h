/* Tiles that wait for a lane, in order of arrival. Some also wait for a program. */
#ifndef DEVICE_TILE_QUEUE_H
#define DEVICE_TILE_QUEUE_H

#include "common/wire.h"
#include "device/arenas.h"
#include "device/lane.h"
#include "device/plans.h"

struct queued_tile;

struct tile_queue {
	struct queued_tile *first, **last;
	struct queued_tile *over; /* taken out, of those that were told of */
	uint32_t count;
};

/* None yet. */
void tile_queue_init(struct tile_queue *queue);
/* Discards all tiles without answering them. */
void tile_queue_fini(struct tile_queue *queue);

/* Adds a tile that has come now, in milliseconds of a clock that is the same for all. ERR_MEMORY.
 */
enum error tile_queue_add(struct tile_queue *queue, const struct message_tile *tile,
                          uint64_t now_ms) MUST_CHECK;

/* Takes out the first tile that need not wait for a program, or has waited too long for it: then
 * *late. Its plan is then the current one. False if there is none. */
bool tile_queue_next(struct tile_queue *queue, struct plans *plans, struct programs *programs,
                     uint64_t now_ms, struct message_tile *tile, bool *late);

/* A tile that has been found to wait for a program, for so long at most; each is told of once.
 * False if there is none. */
bool tile_queue_lacking(struct tile_queue *queue, struct message_tile *tile, uint32_t *wait_ms);

/* A tile that was told of and has been taken out; each once, and before it is answered. False if
 * there is none. */
bool tile_queue_over(struct tile_queue *queue, struct message_tile *tile);

/* Takes out tiles of a plan, whose number is id, that lie in an arena and may go into one stack
 * with tiles[0]; adds them to it until there are `most`, ordered such that neighbours in an arena
 * are neighbours here. Returns how many there are then, at least 1. */
uint32_t tile_queue_gather(struct tile_queue *queue, const struct arenas *arenas, uint64_t id,
                           const struct plan *plan, uint32_t most,
                           struct lane_tile tiles[STACK_MAX]);

#endif
