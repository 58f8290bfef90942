/* The plans are in a list, which is usually short. */
#include "device/plans.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

static void remove_first(struct known_plan **link)
{
	struct known_plan *known = *link;

	*link = known->next;
	plan_free(&known->plan);
	object_release(OBJECT_PLAN, known);
}

void plans_fini(struct plans *plans)
{
	while (plans->first)
		remove_first(&plans->first);
}

struct known_plan *plans_find(const struct plans *plans, uint64_t id)
{
	struct known_plan *known = plans->first;

	while (known && known->id != id)
		known = known->next;
	return known;
}

/* Frees plans that are dropped and no longer in use. */
static void sweep(struct plans *plans)
{
	struct known_plan **link = &plans->first;

	while (*link)
		if ((*link)->id || (*link)->uses)
			link = &(*link)->next;
		else
			remove_first(link);
}

void plans_release(struct plans *plans, struct known_plan *known)
{
	known->uses--;
	sweep(plans);
}

void plans_drop(struct plans *plans, uint64_t id)
{
	struct known_plan *known = plans_find(plans, id);

	if (known)
		known->id = 0;
	sweep(plans);
}

/* A number that changes with what plans depend on: compiled programs and the tuner's choices. */
static uint64_t generation(const struct plans *plans)
{
	struct message_programs built;
	uint32_t choices;

	programs_count(plans->programs, &built);
	tuner_choices(plans->tuner, &choices);
	return (uint64_t)built.compiled + built.cached + built.failed + choices;
}

/* Records why there is no plan. A variant that can do no step of the chain is the client's error;
 * anything else is internal and logged. */
static void describe_failure(const struct plans *plans, const struct chain *chain,
                             struct known_plan *known)
{
	char what[sizeof known->reason - 72];

	if (known->error != ERR_BAD_PARAMETER || chain->variant == VARIANT_ANY) {
		log_error("cannot make a plan: %s", error_slug(known->error));
		known->error = ERR_INTERNAL;
		return;
	}
	variant_describe(chain_kernel(chain), what, sizeof what);
	snprintf(known->reason, sizeof known->reason, "on %.40s no filter here can use %s",
	         programs_device(plans->programs)->name, what);
}

/* Makes a plan and adds it to the list. Errors of the request are kept with the plan. ERR_MEMORY
 * and ERR_DEVICE are returned, because another try may succeed. */
static enum error make(struct plans *plans, uint64_t id, const struct chain *chain,
                       const struct image *image, uint32_t client)
{
	struct known_plan *known = object_add(OBJECT_PLAN, calloc(1, sizeof *known));
	enum error e = ERR_OK;

	if (!known)
		return ERR_MEMORY;
	known->id = id;
	known->generation = generation(plans);
	programs_for(plans->programs, client);
	known->error =
	    plan_new(plans->programs, chain, image, tuner_choose, plans->tuner, &known->plan);
	if (!known->error)
		known->plan->client = client;
	if (known->error == ERR_DEVICE || known->error == ERR_MEMORY)
		e = known->error;
	if (known->error)
		describe_failure(plans, chain, known);
	known->next = plans->first;
	plans->first = known;
	return e;
}

enum error plans_add(struct plans *plans, const struct message_plan *message, int chain_fd)
{
	struct chain *chain;
	enum error e = chain_take(chain_fd, &chain);

	if (!e && (!message->plan || !image_valid(&message->image) ||
	           image_planes(&message->image) > 1 || plans_find(plans, message->plan)))
		e = ERR_INTERNAL;
	if (!e)
		e = make(plans, message->plan, chain, &message->image, message->client);
	free(chain);
	return e;
}

struct known_plan *plans_current(struct plans *plans, uint64_t id)
{
	struct known_plan *known = plans_find(plans, id), *new;

	if (!known || !known->plan || known->generation == generation(plans))
		return known;
	known->generation = generation(plans);
	if (make(plans, id, &known->plan->chain, &known->plan->image, known->plan->client))
		log_warning("cannot update a plan; keeping the old one");
	new = plans_find(plans, id); /* the newest comes first */
	if (new != known)
		(new->plan ? known : new)->id = 0;
	return plans_find(plans, id);
}
