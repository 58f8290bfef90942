#include "sets.h"

#include <stdio.h>
#include <stdlib.h>

#include "pairwise.h"

enum { FILTER, TYPE, KIND, CIRCUMSTANCE, FACTORS = CIRCUMSTANCE + CIRCUMSTANCES };

void tally_trial(struct tally *tally, struct harness *h, const struct trial *t)
{
	int result = trial_run(h, t);

	if (result < 0)
		return;
	tally->counts[result]++;
	tally->met[t->image.type][t->border] = true;
}

static bool has_alpha(const struct set *set)
{
	for (size_t i = 0; i < set->count; i++)
		if (!group_alpha_is_stable(&set->group[i]))
			return false;
	return true;
}

void set_try(struct harness *h, const struct set *set, uint32_t variant, struct tally *tally)
{
	static struct pairwise p;
	unsigned levels[FACTORS] = {(unsigned)set->count, PIXEL_TYPES,
	                            has_alpha(set) ? KINDS : KINDS_OPAQUE};

	for (size_t i = 0; i < CIRCUMSTANCES; i++)
		levels[CIRCUMSTANCE + i] = circumstance_levels[i];
	if (!pairwise_init(&p, levels, FACTORS, random_below(1u << 31)))
		abort();
	for (size_t i = 0; i < p.rows; i += (size_t)trial_every) {
		const uint8_t *row = p.row[i];
		struct trial t = {.group = &set->group[row[FILTER]],
		                  .variant = variant,
		                  .image = {.type = row[TYPE]}};

		trial_set_kind(&t, row[KIND]);
		trial_set_circumstances(
		    &t, row + CIRCUMSTANCE,
		    variant ? variant_get(variant - 1)->samples_min / t.image.bands + 1 : 0);
		tally_trial(tally, h, &t);
	}
}

void tally_print(const struct tally *tally, size_t number, const char *name, int totals[2])
{
	const int *counts = tally->counts;

	printf("%s %zu - %s (%d images)\n", counts[0] ? "not ok" : "ok", number, name,
	       counts[0] + counts[1]);
	fflush(stdout);
	totals[0] += counts[0];
	totals[1] += counts[1];
}
