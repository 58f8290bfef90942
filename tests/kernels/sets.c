#include "sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

#include "pairwise.h"

enum { FILTER, TYPE, KIND, CIRCUMSTANCE, FACTORS = CIRCUMSTANCE + CIRCUMSTANCES };

static char matrix63[1 << 16], matrix_huge[4096], matrix_gain[8192];

#define SET(name, operation) {name, NULL},
#define GROUP(name, chain)   {name, chain},
static const struct group groups[] = {
#include "sets.def"
};
#undef SET
#undef GROUP
#define SET(name, operation) operation,
#define GROUP(name, chain)
static const enum operation_kind operations[] = {
#include "sets.def"
};

struct set sets[sizeof operations / sizeof *operations];
const size_t sets_count = sizeof sets / sizeof *sets;

/* "convolve=kernel=…", random, coefficients from `least` on. */
static void write_matrix(char *text, size_t size, int side, int least, int range, const char *rest)
{
	size_t used = (size_t)snprintf(text, size, "convolve=kernel=");

	for (int i = 0; i < side * side; i++)
		used += (size_t)snprintf(text + used, size - used, "%d%s",
		                         least + (int)random_below((uint32_t)range),
		                         i == side * side - 1   ? ""
		                         : i % side == side - 1 ? ";"
		                                                : " ");
	snprintf(text + used, size - used, "%s", rest);
}

void sets_init(void)
{
	size_t n = 0;

	for (const struct group *g = groups; g < groups + sizeof groups / sizeof *groups; g++) {
		if (g->chain) {
			sets[n - 1].count++;
			continue;
		}
		sets[n] = (struct set){g->name, operations[n], g + 1, 0};
		n++;
	}
	write_matrix(matrix63, sizeof matrix63, 63, 1, 100, "");
	write_matrix(matrix_gain, sizeof matrix_gain, 15, -20, 41, ":scale=1");
	write_matrix(matrix_huge, sizeof matrix_huge, 5, -6000000, 12000001, ":scale=1");
}

void tally_trial(struct tally *tally, struct harness *h, const struct trial *t)
{
	if (!trial_run(h, t))
		return;
	tally->trials++;
	tally->of_type[t->image.type]++;
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

	trial_circumstances(variant, levels + CIRCUMSTANCE);
	if (!pairwise_init(&p, levels, FACTORS, random_below(1u << 31)))
		abort();
	/* The first rows of a cover differ most. */
	for (size_t i = 0; i < howmany(p.rows, (size_t)options.every); i++) {
		const uint8_t *row = p.row[i];
		struct trial t = {.group = &set->group[row[FILTER]],
		                  .variant = variant,
		                  .image = {.type = row[TYPE]}};

		trial_set_kind(&t, row[KIND]);
		trial_set_circumstances(&t, row + CIRCUMSTANCE);
		tally_trial(tally, h, &t);
	}
}
