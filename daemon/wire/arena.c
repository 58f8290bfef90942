/* Two shared mappings. */
#include "wire/arena.h"

#include <stddef.h>
#include <sys/mman.h>

enum error arena_map(struct arena *arena, int in_fd, uint64_t in_size, int in_protection,
                     int out_fd, uint64_t out_size, int out_protection)
{
	*arena = (struct arena){.in_size = in_size, .out_size = out_size};
	arena->in = mmap(NULL, in_size, in_protection, MAP_SHARED, in_fd, 0);
	if (arena->in == MAP_FAILED)
		return ERR_IO;
	arena->out = mmap(NULL, out_size, out_protection, MAP_SHARED, out_fd, 0);
	if (arena->out == MAP_FAILED) {
		munmap(arena->in, in_size);
		return ERR_IO;
	}
	return ERR_OK;
}

void arena_unmap(struct arena *arena)
{
	munmap(arena->in, arena->in_size);
	munmap(arena->out, arena->out_size);
	*arena = (struct arena){0};
}
