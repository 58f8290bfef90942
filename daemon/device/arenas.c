/* The arenas are in an array: there is one for each codec worker. */
#include "device/arenas.h"

#include <stdlib.h>

#include "common/log.h"

void arenas_fini(struct arenas *arenas)
{
	for (uint32_t i = 0; i < arenas->count; i++)
		device_arena_close(&arenas->arena[i]);
	free(arenas->arena);
	*arenas = (struct arenas){0};
}

const struct device_arena *arenas_find(const struct arenas *arenas, uint32_t number)
{
	for (uint32_t i = 0; i < arenas->count; i++)
		if (arenas->arena[i].number == number)
			return &arenas->arena[i];
	return NULL;
}

enum error arenas_take(struct arenas *arenas, const struct device *device,
                       const struct message_arena *message, const int fds[2])
{
	struct device_arena *grown;
	enum error e;

	if (arenas_find(arenas, message->arena)) {
		log_error("arena %u is already known", message->arena);
		return ERR_INTERNAL;
	}
	grown = reallocarray(arenas->arena, arenas->count + 1, sizeof *grown);
	if (!grown)
		return ERR_MEMORY;
	arenas->arena = grown;
	e = device_arena_open(&grown[arenas->count], device, fds[0], message->in_size, fds[1],
	                      message->out_size);
	if (!e)
		grown[arenas->count++].number = message->arena;
	return e;
}

enum error arenas_drop(struct arenas *arenas, uint32_t number)
{
	for (uint32_t i = 0; i < arenas->count; i++) {
		if (arenas->arena[i].number != number)
			continue;
		device_arena_close(&arenas->arena[i]);
		arenas->arena[i] = arenas->arena[--arenas->count];
		return ERR_OK;
	}
	log_error("unknown arena %u", number);
	return ERR_INTERNAL;
}

bool arenas_hold(const struct arenas *arenas, const struct tile *tile, const struct image *image,
                 const struct chain *chain)
{
	const struct device_arena *arena = arenas_find(arenas, tile->arena);

	return arena &&
	       tile_valid(tile, image, chain, arena->memory.in_size, arena->memory.out_size);
}
