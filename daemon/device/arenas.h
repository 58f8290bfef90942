/* The arenas received from the front, by the front's numbers. */
#ifndef DEVICE_ARENAS_H
#define DEVICE_ARENAS_H

#include "common/chain.h"
#include "common/tile.h"
#include "common/wire.h"
#include "device/cl/memory.h"

/* The list of arenas. All zeros: empty. */
struct arenas {
	struct device_arena *arena;
	uint32_t count;
};

/* Closes all arenas and empties the list. No command may still use them. */
void arenas_fini(struct arenas *arenas);

/* Maps an arena and registers it with the device, which must outlive it. The caller keeps both
 * descriptors. ERR_INTERNAL, logged, if the number is in use; ERR_MEMORY, ERR_IO or ERR_DEVICE. */
enum error arenas_take(struct arenas *arenas, const struct device *device,
                       const struct message_arena *message, const int fds[2]) MUST_CHECK;
/* Closes the arena with this number. ERR_INTERNAL, logged, if there is none. */
enum error arenas_drop(struct arenas *arenas, uint32_t number) MUST_CHECK;

/* The arena with this number, or NULL. The list owns it; adding or dropping arenas may move it. */
const struct device_arena *arenas_find(const struct arenas *arenas, uint32_t number);

/* True if the tile lies within its arena and fits the image and the chain. */
bool arenas_hold(const struct arenas *arenas, const struct tile *tile, const struct image *image,
                 const struct chain *chain);

#endif
