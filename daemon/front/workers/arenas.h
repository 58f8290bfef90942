/* The arenas: the memory that a codec worker shares with the devices, by the worker's number. This
 * is who knows which of them are open, and which workers have been told. */
#ifndef FRONT_WORKERS_ARENAS_H
#define FRONT_WORKERS_ARENAS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/error.h"
#include "front/workers/supervisor.h"

enum { ARENAS_MAX = 64 };

/* The descriptors stay the arena's. */
struct arena_files {
	int in, in_read_only, out;
	uint64_t size; /* bytes of `in`, and of `out` */
};

/* Opens one, which must not be open, and tells all who are to know of arenas; closes one, if it is
 * open, and tells them. */
enum error arenas_open(unsigned arena, uint64_t size) MUST_CHECK;
void arenas_close(unsigned arena);

/* NULL if it is not open. */
const struct arena_files *arenas_get(unsigned arena);

/* Tells a worker of one that is open. False if the worker failed on that. */
bool arenas_tell(unsigned arena, struct worker *worker, bool read_only);

/* A worker that is to know of all arenas; embedded where that is said. */
struct arena_user {
	struct worker *worker; /* NULL: it is to know of none */
	bool read_only;        /* it reads `in`, and cannot write to it */
	bool fresh;            /* set when it has been told of another */
	LIST_ENTRY(arena_user) place;
};

/* From now on, until arenas_leave(), a worker that is up is told. False if it failed on that.
 * arenas_leave() may be called without arenas_join() before. */
bool arenas_join(struct arena_user *user, struct worker *worker, bool read_only);
void arenas_leave(struct arena_user *user);

#endif
