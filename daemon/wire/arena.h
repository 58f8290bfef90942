/* Shared memory that carries the pixels of tiles. */
#ifndef WIRE_ARENA_H
#define WIRE_ARENA_H

#include <stdint.h>

#include "base/error.h"

/* One arena, mapped. */
struct arena {
	void *in, *out;
	uint64_t in_size, out_size; /* bytes; multiples of SLOT_ALIGNMENT */
};

/* Maps both parts; in_protection and out_protection as for mmap(). The caller keeps the descriptors
 * and may close them. On failure nothing is mapped. */
enum error arena_map(struct arena *arena, int in_fd, uint64_t in_size, int in_protection,
                     int out_fd, uint64_t out_size, int out_protection) MUST_CHECK;
void arena_unmap(struct arena *arena);

#endif
