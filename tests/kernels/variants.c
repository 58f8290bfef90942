/* Each kernel that does an operation, forced, on filters of that operation. The general ones have
 * one program for all; of the others each case (a filter, a type, a kind of pixels) has one, which
 * takes some time to be built: so few cases are tried, and those of all kernels are asked for
 * first. */
#include "variants.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "pairwise.h"
#include "sets.h"

/* Filters of each operation, the first of its set: of costly kernels, and of others. */
enum { FEW = 3, MANY = 9, FILTERS_MOST = 24, CASES_MOST = 512 };

/* Every number of bands, with and without alpha, all changed and not. The last two are for kernels
 * that cannot keep a band, or make each of all: of kept ones nothing is seen. */
static const enum kind kinds[] = {
    PIXELS_GREY, PIXELS_CMYK, PIXELS_GREEN, PIXELS_GREY_ALPHA, PIXELS_RGB_ALPHA_COLOR,
    PIXELS_RGB,  PIXELS_TWO};
enum { KINDS_TRIED = sizeof kinds / sizeof *kinds, KINDS_OF_MOST = KINDS_TRIED - 2 };

/* The parameters that a kernel is compiled for, as levels. Alpha can be negative in floats only. */
enum { FILTER, TYPE, KIND, NEGATIVE_ALPHA, PARTS };

struct cases {
	const struct group *filter[FILTERS_MOST];
	size_t filters, count;
	uint8_t part[CASES_MOST][PARTS];
};

static struct cases cases[KERNELS];

static struct trial trial_of(enum kernel kernel, const uint8_t *part)
{
	struct trial t = {.group = cases[kernel].filter[part[FILTER]],
	                  .variant = kernel + 1,
	                  .image = {.width = 300, .height = 20, .type = part[TYPE]}};

	trial_set_kind(&t, kinds[part[KIND]]);
	return t;
}

static bool is_classic(enum kernel kernel)
{
	return kernel_row(kernel)->origin == KERNEL_CLASSIC;
}

/* Kernels shaped for GPUs take longest to be compiled for a CPU, and most for large windows. */
static bool is_costly(const struct harness *h, enum kernel kernel)
{
	return h->device.type == DEVICE_CPU && kernel_row(kernel)->device >= KERNEL_FOR_GPU &&
	       !(variant_rows[kernel].needs & VARIANT_RUN_TIME);
}

/* All that the kernel does; if that is costly, by small windows. */
static void find_cases(struct harness *h, enum kernel kernel)
{
	const uint32_t operations = kernel_row(kernel)->operations;
	const bool all_kinds = is_classic(kernel) || operations >> OPERATION_MIX & 1;
	const size_t most = is_costly(h, kernel) ? FEW : MANY;
	struct cases *c = &cases[kernel];

	for (size_t i = 0; i < sets_count; i++)
		for (size_t k = 0; k < MIN(sets[i].count, most); k++)
			if (operations >> sets[i].operation & 1)
				c->filter[c->filters++] = &sets[i].group[k];
	for (size_t i = 0; i < c->filters * PIXEL_TYPES * KINDS_TRIED; i++) {
		uint8_t *part = c->part[c->count];
		struct trial t;

		part[FILTER] = (uint8_t)(i / KINDS_TRIED / PIXEL_TYPES);
		part[TYPE] = (uint8_t)(i / KINDS_TRIED % PIXEL_TYPES);
		part[KIND] = (uint8_t)(i % KINDS_TRIED);
		part[NEGATIVE_ALPHA] =
		    part[TYPE] == PIXEL_F32 && kinds[part[KIND]] == PIXELS_GREY_ALPHA;
		t = trial_of(kernel, part);
		if (part[KIND] < KINDS_OF_MOST || all_kinds)
			c->count += trial_plan(h, &t, true);
	}
}

/* The levels, and pairs of levels, that the chosen cases have. */
typedef bool known_pairs[PARTS][FILTERS_MOST][PARTS][FILTERS_MOST];

/* Tells whether these parts have to meet in pairs: if compiling takes little. */
static bool is_pair(const struct harness *h, enum kernel kernel, int i, int k)
{
	if (h->device.type != DEVICE_CPU)
		return true;
	return is_classic(kernel) &&
	       ((i != FILTER && k != FILTER) || variant_rows[kernel].needs & VARIANT_RUN_TIME);
}

/* A type that is new counts for more than all else of a case. */
enum { NEW_TYPE = PARTS * PARTS };

/* Returns how much that has to meet is new in a case. */
static unsigned count_new(const struct harness *h, enum kernel kernel, known_pairs known,
                          const uint8_t *part)
{
	unsigned count = 0;

	for (int i = 0; i < PARTS; i++)
		for (int k = i; k < PARTS; k++)
			if (i == k || is_pair(h, kernel, i, k))
				count += !known[i][part[i]][k][part[k]];
	if (!known[TYPE][part[TYPE]][TYPE][part[TYPE]])
		count += NEW_TYPE;
	return count;
}

/* Chooses cases until nothing has to meet any more: first those with the most that is new, from a
 * random one on. If only some trials are made, the first of these: one of a costly kernel, of
 * others some that have all types. */
static void choose_cases(const struct harness *h, enum kernel kernel)
{
	struct cases *all = &cases[kernel];
	known_pairs known = {0};
	uint8_t chosen[CASES_MOST][PARTS];
	size_t count = 0;

	for (unsigned least = 2 * NEW_TYPE; all->count && least; least--) {
		const size_t first = random_below((uint32_t)all->count);

		for (size_t n = 0; n < all->count; n++) {
			const uint8_t *part = all->part[(first + n) % all->count];

			if (count_new(h, kernel, known, part) < least)
				continue;
			for (int i = 0; i < PARTS; i++)
				for (int k = i; k < PARTS; k++)
					known[i][part[i]][k][part[k]] = true;
			memcpy(chosen[count++], part, PARTS);
		}
	}
	memcpy(all->part, chosen, count * PARTS);
	if (options.every > 1)
		count = MIN(count, is_costly(h, kernel)
		                       ? 1
		                       : MAX(PIXEL_TYPES, howmany(count, (size_t)options.every)));
	all->count = count;
}

/* Tries the cases of a kernel that is compiled for each, every one under all circumstances. */
static void try_cases(struct harness *h, enum kernel kernel, struct tally *tally)
{
	static struct pairwise p;
	unsigned levels[1 + CIRCUMSTANCES] = {(unsigned)cases[kernel].count};

	trial_circumstances(kernel + 1, levels + 1);
	if (!levels[0])
		return;
	if (!pairwise_init(&p, levels, 1 + CIRCUMSTANCES, random_below(1u << 31)))
		abort();
	for (size_t i = 0; i < howmany(p.rows, (size_t)options.every); i++) {
		struct trial t = trial_of(kernel, cases[kernel].part[p.row[i][0]]);

		trial_set_circumstances(&t, p.row[i] + 1);
		tally_trial(tally, h, &t);
	}
}

/* Types that a kernel can do have been tried. */
static void check_types(enum kernel kernel, const struct tally *tally)
{
	for (enum pixel_type type = 0; type < PIXEL_TYPES; type++)
		if (kernel_row(kernel)->types >> type & 1 && !tally->of_type[type])
			fail("%s was not tried with %s", kernel_name(kernel),
			     pixel_type_rows[type].name);
}

static bool is_wanted(enum kernel kernel, bool classic)
{
	return kernel_row(kernel)->operations && is_classic(kernel) == classic &&
	       (!options.only || !strcmp(options.only, kernel_name(kernel)));
}

void variants_run(struct harness *h, bool classic)
{
	for (enum kernel k = 0; k < KERNELS; k++) {
		if (!is_wanted(k, classic) || variant_is_general(k))
			continue;
		find_cases(h, k);
		choose_cases(h, k);
		for (size_t i = 0; i < cases[k].count; i++) {
			struct trial t = trial_of(k, cases[k].part[i]);

			trial_plan(h, &t, false);
		}
	}
	for (enum kernel k = 0; k < KERNELS; k++) {
		const uint32_t operations = kernel_row(k)->operations;
		struct tally tally = {0};

		if (!is_wanted(k, classic))
			continue;
		if (!variant_is_general(k))
			try_cases(h, k, &tally);
		for (size_t i = 0; variant_is_general(k) && i < sets_count; i++)
			if (operations >> sets[i].operation & 1)
				set_try(h, &sets[i], k + 1, &tally);
		if (!tally.trials && variant_is_general(k) && options.every == 1)
			fail("no set in sets.def tries %s", kernel_name(k));
		if (tally.trials &&
		    (options.every == 1 || (options.every <= EVERY && !is_costly(h, k))))
			check_types(k, &tally);
		test_end("variant %s (%u images)", kernel_name(k), tally.trials);
	}
}
