/* Jobs share equal chains and plans; a plan is a chain and a kind of image. Most clients send the
 * same few requests, so each worker is told about each plan once. */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "filters/chain.h"

/* A chain, and the sealed memfd that carries it to the workers. */
struct shared_chain {
	LIST_ENTRY(shared_chain) place;
	struct chain *chain;
	size_t size;
	int fd;
	unsigned users;
};

enum { PLANS_MAX = 128 }; /* twice the number of codec workers, each of which uses at most one */

struct plan {
	uint64_t id; /* unique; 0: this place is empty */
	unsigned place;
	unsigned users;
	uint64_t used; /* when it was last used: larger is later */
	struct shared_chain *chain;
	struct image image;
};

/* Shares a chain, which it takes over also on failure. NULL without memory or descriptors. */
struct shared_chain *chain_share(struct chain *chain);
/* Releases a shared chain. Some unused ones are kept for later jobs. */
void chain_release(struct shared_chain *chain);

/* Returns the plan for images of this kind. Never fails, since at most one plan for each codec
 * worker is in use. A device is told to drop a plan when it is sent the plan's successor. */
struct plan *plan_use(struct shared_chain *chain, const struct image *image);
/* None of the plan's tiles is in flight any more. */
void plan_release(struct plan *plan);

/* Frees all unused chains and plans. */
void plans_fini(void);
