/* The arenas that the front has handed over, by the numbers that it gave them. */
#ifndef DEVICE_ARENAS_H
#define DEVICE_ARENAS_H

#include "common/chain.h"
#include "common/tile.h"
#include "common/wire.h"
#include "device/cl/memory.h"

/* All zero: none yet. */
struct arenas {
	struct device_arena *arena;
	uint32_t count;
};

/* Closes all; they are then none. Nothing may use them any more. */
void arenas_fini(struct arenas *arenas);

/* Maps an arena and registers it with the device, which must outlive it. The two descriptors stay
 * the caller's. ERR_INTERNAL, logged, if the number is taken; ERR_MEMORY, ERR_IO or ERR_DEVICE. */
enum error arenas_take(struct arenas *arenas, const struct device *device,
                       const struct message_arena *message, const int fds[2]) MUST_CHECK;
/* Closes the arena with a number. ERR_INTERNAL, logged, if there is none. */
enum error arenas_drop(struct arenas *arenas, uint32_t number) MUST_CHECK;

/* The arena with a number, or NULL; it is the list's, and may move when one comes or goes. */
const struct device_arena *arenas_find(const struct arenas *arenas, uint32_t number);

/* True if the tile lies within the arena that it names, and fits image and chain. */
bool arenas_hold(const struct arenas *arenas, const struct tile *tile, const struct image *image,
                 const struct chain *chain);

#endif
