/* A list of chains, most recent first, and a table of plans. Both are short, and the most recent is
 * the most likely to be wanted next. */
#include "front/jobs/plans.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memfd.h"

/* UNUSED_MAX: the number of chains that are kept without a job. Chains that know an image's edges,
 * and are larger than KEPT_SIZE_MAX, are not kept. */
enum { UNUSED_MAX = 32, KEPT_SIZE_MAX = sizeof(struct chain) };

static LIST_HEAD(chain_list, shared_chain) chains;
static struct plan plans[PLANS_MAX];
static uint64_t last_id, turn;

struct shared_chain *chain_share(struct chain *chain)
{
	size_t size = chain_size(chain);
	struct shared_chain *c;

	LIST_FOREACH(c, &chains, place)
		if (c->size == size && !memcmp(c->chain, chain, size))
			break;
	if (c) {
		free(chain);
		LIST_REMOVE(c, place);
	} else {
		c = calloc(1, sizeof *c);
		if (!c || memfd_sealed("chain", chain, size, &c->fd)) {
			free(c);
			free(chain);
			return NULL;
		}
		c->chain = chain;
		c->size = size;
	}
	c->users++;
	LIST_INSERT_HEAD(&chains, c, place);
	return c;
}

/* Frees unused chains, except the `most` newest ones of at most this size. */
static void free_unused(unsigned most, size_t size_max)
{
	unsigned unused = 0;

	for (struct shared_chain *c = LIST_FIRST(&chains), *next; c; c = next) {
		next = LIST_NEXT(c, place);
		if (c->users || (c->size <= size_max && unused++ < most))
			continue;
		LIST_REMOVE(c, place);
		close(c->fd);
		free(c->chain);
		free(c);
	}
}

void chain_release(struct shared_chain *chain)
{
	chain->users--;
	free_unused(UNUSED_MAX, KEPT_SIZE_MAX);
}

static void clear_place(struct plan *plan)
{
	if (!plan->id)
		return;
	chain_release(plan->chain);
	*plan = (struct plan){0};
}

struct plan *plan_use(struct shared_chain *chain, const struct image *image)
{
	struct plan *oldest = NULL;

	for (struct plan *p = plans; p < plans + PLANS_MAX; p++) {
		if (p->id && p->chain == chain && !memcmp(&p->image, image, sizeof *image)) {
			p->users++;
			p->used = ++turn;
			return p;
		}
		if (!p->users && (!oldest || p->used < oldest->used))
			oldest = p;
	}
	assert(oldest); /* see PLANS_MAX */
	clear_place(oldest);
	chain->users++;
	*oldest = (struct plan){.id = ++last_id,
	                        .place = (unsigned)(oldest - plans),
	                        .users = 1,
	                        .used = ++turn,
	                        .chain = chain,
	                        .image = *image};
	return oldest;
}

void plan_release(struct plan *plan)
{
	plan->users--;
	if (!plan->users && plan->chain->size > KEPT_SIZE_MAX)
		clear_place(plan);
}

void plans_fini(void)
{
	for (struct plan *p = plans; p < plans + PLANS_MAX; p++)
		clear_place(p);
	free_unused(0, 0);
}
