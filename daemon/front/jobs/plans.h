/* What jobs share: chains that are the same, and plans, which are a chain and a kind of image. Most
 * clients ask for the same few things, so a worker is told of each once. */
#ifndef FRONT_JOBS_PLANS_H
#define FRONT_JOBS_PLANS_H

#include <stdint.h>

#include "common/chain.h"

/* A chain, and the sealed memfd that carries it to the workers. */
struct shared_chain {
	struct shared_chain *next;
	struct chain *chain;
	size_t size;
	int fd;
	unsigned users;
};

enum { PLANS_MAX = 128 }; /* twice as many as codec workers, each of which uses one at most */

struct plan {
	uint64_t id; /* unique; 0: this place is empty */
	unsigned place;
	unsigned users;
	uint64_t used; /* when it was last asked for: larger is later */
	struct shared_chain *chain;
	struct image image;
};

/* A chain that is the same as this one, which is owned from now on, also on failure. NULL without
 * memory or descriptors. */
struct shared_chain *chain_share(struct chain *chain);
/* Lets go of it. Some that nobody uses are kept for the next job. */
void chain_release(struct shared_chain *chain);

/* The plan for images of this kind. Never fails: no more are in use than there are codec workers.
 * A plan that has lost its place to another is forgotten by the devices that learn of that one. */
struct plan *plan_use(struct shared_chain *chain, const struct image *image);
/* No tile of it is out any more. */
void plan_release(struct plan *plan);

/* Forgets all that nobody uses. */
void plans_fini(void);

#endif
