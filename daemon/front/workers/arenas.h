/* The arenas: the memory that each codec worker, by its number, shares with the devices. This
 * module owns them, and tells joined workers which arenas are open. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "front/workers/supervisor.h"

enum { ARENAS_MAX = 64 };

/* An open arena's memfds, which the arena owns. */
struct arena_files {
	int in, in_read_only, out;
	uint64_t size; /* bytes of `in`, and of `out` */
};

/* Open a closed arena of `size` bytes each for input and output; close one that may be open. Both
 * tell all arena users. ERR_IO if it cannot be allocated (logged). */
enum error arenas_open(unsigned arena, uint64_t size) MUST_CHECK;
void arenas_close(unsigned arena);

/* Returns the arena's files, or NULL if it is not open. */
const struct arena_files *arenas_get(unsigned arena);

/* Sends an open arena to a worker. read_only: `in` for reading only. */
void arenas_tell(unsigned arena, struct worker *worker, bool read_only);

/* A worker that learns of all arenas; embedded in the owner's struct. */
struct arena_user {
	struct worker *worker; /* NULL: has not joined */
	bool read_only;        /* it gets `in` for reading only */
	bool fresh;            /* set whenever it is told of an arena */
	LIST_ENTRY(arena_user) place;
};

/* Tells a worker that is up of all open arenas, and from then on of every change, until
 * arenas_leave(), which does nothing if the user has not joined. */
void arenas_join(struct arena_user *user, struct worker *worker, bool read_only);
void arenas_leave(struct arena_user *user);
