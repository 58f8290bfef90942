/* A list: the front sends only a few tiles more than there are lanes. */
#include "device/tile_queue.h"

#include <stdlib.h>

#include "device/cl/object_counts.h"

struct queued_tile {
	struct queued_tile *next;
	struct message_tile message;
	uint64_t since_ms;
	uint32_t wait_ms; /* maximum wait for a program; 0: none */
	bool told;
};

void tile_queue_init(struct tile_queue *w)
{
	*w = (struct tile_queue){.last = &w->first};
}

/* Removes the tile that a link points to. */
static void remove_tile(struct tile_queue *w, struct queued_tile **link)
{
	struct queued_tile *tile = *link;

	*link = tile->next;
	if (!*link)
		w->last = link;
	w->count--;
	if (tile->told) {
		tile->next = w->over;
		w->over = tile;
	} else {
		object_release(OBJECT_TILE, tile);
	}
}

bool tile_queue_over(struct tile_queue *w, struct message_tile *tile)
{
	struct queued_tile *over = w->over;

	if (!over)
		return false;
	w->over = over->next;
	*tile = over->message;
	object_release(OBJECT_TILE, over);
	return true;
}

void tile_queue_fini(struct tile_queue *w)
{
	struct message_tile tile;

	while (w->first)
		remove_tile(w, &w->first);
	while (tile_queue_over(w, &tile))
		;
}

enum error tile_queue_add(struct tile_queue *w, const struct message_tile *tile, uint64_t now_ms)
{
	struct queued_tile *waiting = object_add(OBJECT_TILE, malloc(sizeof *waiting));

	if (!waiting)
		return ERR_MEMORY;
	*waiting = (struct queued_tile){.message = *tile, .since_ms = now_ms};
	*w->last = waiting;
	w->last = &waiting->next;
	w->count++;
	return ERR_OK;
}

/* The maximum wait, in milliseconds, for the programs that a tile's plan lacks; 0: it lacks none,
 * or they cannot be made. */
static uint32_t program_wait(const struct message_tile *tile, struct plans *plans,
                             struct programs *programs)
{
	const struct known_plan *known = plans_current(plans, tile->plan);

	if (!known || !known->plan ||
	    plan_resolve(known->plan, programs, tile->tile.form) != PROGRAM_PENDING)
		return 0;
	return variant_is_general(plan_lacks(known->plan)) ? GENERAL_WAIT_MS : PROGRAM_WAIT_MS;
}

bool tile_queue_next(struct tile_queue *w, struct plans *plans, struct programs *programs,
                     uint64_t now_ms, struct message_tile *tile, bool *late)
{
	for (struct queued_tile **link = &w->first, *waiting; (waiting = *link);
	     link = &waiting->next) {
		waiting->wait_ms = program_wait(&waiting->message, plans, programs);
		*late = waiting->wait_ms && now_ms - waiting->since_ms >= waiting->wait_ms;
		if (waiting->wait_ms && !*late)
			continue;
		*tile = waiting->message;
		remove_tile(w, link);
		return true;
	}
	return false;
}

bool tile_queue_lacking(struct tile_queue *w, struct message_tile *tile, uint32_t *wait_ms)
{
	struct queued_tile *waiting = w->first;

	while (waiting && (!waiting->wait_ms || waiting->told))
		waiting = waiting->next;
	if (!waiting)
		return false;
	waiting->told = true;
	*wait_ms = waiting->wait_ms;
	*tile = waiting->message;
	return true;
}

/* Orders tiles by their place in the arenas, because neighbours are copied together. */
static int compare_places(const void *a, const void *b)
{
	const struct tile *x = &((const struct lane_tile *)a)->tile,
	                  *y = &((const struct lane_tile *)b)->tile;

	if (x->arena != y->arena)
		return x->arena < y->arena ? -1 : 1;
	return x->in < y->in ? -1 : x->in > y->in;
}

uint32_t tile_queue_stack(struct tile_queue *w, const struct arenas *arenas, uint64_t id,
                          const struct plan *plan, uint32_t max, uint64_t scans,
                          struct lane_tile tiles[STACK_MAX])
{
	uint32_t count = 1;
	uint64_t used = tiles[0].tile.in_size;
	struct queued_tile **link = &w->first, *waiting;

	while (count < max && (waiting = *link)) {
		const struct tile *tile = &waiting->message.tile;

		if (waiting->message.plan != id || !lane_stacks(plan, &tiles[0].tile, tile) ||
		    !arenas_hold(arenas, tile, &plan->image, &plan->chain) ||
		    (tile->in_size && (used > scans || tile->in_size > scans - used))) {
			link = &waiting->next;
			continue;
		}
		used += tile->in_size;
		tiles[count++] = (struct lane_tile){*tile, arenas_find(arenas, tile->arena), NULL};
		remove_tile(w, link);
	}
	qsort(tiles, count, sizeof *tiles, compare_places);
	return count;
}
