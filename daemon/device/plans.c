#include "device/plans.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

void plans_release(struct known_plan *known)
{
	if (--known->uses)
		return;
	plan_free(&known->plan);
	object_release(OBJECT_PLAN, known);
}

void plans_init(struct plans *plans, struct programs *programs, struct tuner *tuner)
{
	plans->known =
	    g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, (GDestroyNotify)plans_release);
	plans->programs = programs;
	plans->tuner = tuner;
}

void plans_fini(struct plans *plans)
{
	g_clear_pointer(&plans->known, g_hash_table_destroy);
}

struct known_plan *plans_find(const struct plans *plans, uint64_t id)
{
	return g_hash_table_lookup(plans->known, &id);
}

void plans_drop(struct plans *plans, uint64_t id)
{
	g_hash_table_remove(plans->known, &id);
}

/* Returns a number that changes with all that plans depend on: programs and the tuner's choices. */
static uint64_t generation(const struct plans *plans)
{
	struct message_programs built;
	uint32_t choices;

	tuner_choices(plans->tuner, &choices);
	return programs_count(plans->programs, &built) + choices;
}

/* Makes a plan, or a stored failure if a variant can do no step of the chain (the client's error)
 * or for another reason (logged). ERR_MEMORY and ERR_DEVICE are returned, with nothing made,
 * because another attempt may succeed. */
static enum error make(const struct plans *plans, uint64_t id, const struct chain *chain,
                       const struct image *image, uint32_t client, struct known_plan **made)
{
	struct known_plan *known = object_add(OBJECT_PLAN, calloc(1, sizeof *known));
	char what[sizeof known->reason - 72];
	enum error e;

	*made = NULL;
	if (!known)
		return ERR_MEMORY;
	known->id = id;
	known->generation = generation(plans);
	known->uses = 1;
	programs_for(plans->programs, client);
	e = plan_new(plans->programs, chain, image, tuner_choose, plans->tuner, &known->plan);
	known->error = e;
	if (!e) {
		known->plan->client = client;
	} else if (e == ERR_BAD_PARAMETER && chain->variant != VARIANT_ANY) {
		variant_describe(chain_kernel(chain), what, sizeof what);
		snprintf(known->reason, sizeof known->reason, "on %.40s no filter here can use %s",
		         programs_device(plans->programs)->name, what);
	} else {
		log_error("cannot make a plan: %s", error_row(e)->slug);
		known->error = ERR_INTERNAL;
	}
	if (e == ERR_MEMORY || e == ERR_DEVICE) {
		plans_release(known);
		return e;
	}
	*made = known;
	return ERR_OK;
}

enum error plans_add(struct plans *plans, const struct message_plan *message, int chain_fd)
{
	struct known_plan *known;
	struct chain *chain;
	enum error e = chain_take(chain_fd, &chain);

	if (!e && (!message->plan || !image_valid(&message->image) ||
	           image_planes(&message->image) > 1 || plans_find(plans, message->plan)))
		e = ERR_INTERNAL;
	if (!e)
		e = make(plans, message->plan, chain, &message->image, message->client, &known);
	if (!e)
		g_hash_table_insert(plans->known, &known->id, known);
	free(chain);
	return e;
}

struct known_plan *plans_current(struct plans *plans, uint64_t id)
{
	struct known_plan *known = plans_find(plans, id), *new;
	const struct plan *plan = known ? known->plan : NULL;

	if (!plan || known->generation == generation(plans))
		return known;
	known->generation = generation(plans);
	if (make(plans, id, &plan->chain, &plan->image, plan->client, &new))
		log_warning("cannot update a plan; keeping the old one");
	if (!new)
		return known;
	if (!new->plan) {
		plans_release(new);
		return known;
	}
	g_hash_table_replace(plans->known, &new->id, new); /* this may free the old one */
	return new;
}
