/* Each kernel that does an operation, forced, on filters of that operation. The general ones have
 * one program for all; of the others each case (a filter, a type, a kind of pixels) has one, which
 * takes some time to be built: so few cases are tried, and all of a variant are asked for first. */
#include "variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pairwise.h"
#include "sets.h"

/* The filters that a variant is tried on, by its operation; the first are those of small radii. */
static const struct group separables[] = {
    {"radius 1", "gaussian=size=3"},
    {"radius 2", "gaussian=sigma=1.1:size=5"},
    {"radius 6", "gaussian=sigma=2"},
    {"radius 15", "gaussian=sigma=5"},
    {"3 x 3, a mean given as a matrix", "convolve=kernel=1 2 1;2 4 2;1 2 1"},
    {"3 x 5, signed", "convolve=kernel=1 -2 3;2 -4 6;3 -6 9;2 -4 6;1 -2 3:offset=20"},
    {"radius 25", "box=size=51"},
    {"3 x 3, equal weights", "box=size=3"},
    {"radius 130", "box=size=261"},
};
static const struct group matrices[] = {
    {"matrix 3 x 3", "convolve=kernel=1 2 3;4 5 6;7 8 0"},
    {"matrix 3 x 3, signed", "laplacian"},
    {"matrix 5 x 5", "convolve=kernel=1 2 3 4 5;2 9 4 7 6;3 1 8 0 7;4 4 2 7 1;5 6 7 8 0"},
    {"matrix 7 x 3", "convolve=kernel=1 2 3 4 5 6 7;3 1 4 1 5 9 2;2 7 1 8 2 8 1:offset=3"},
    {"matrix 9 x 11",
     "convolve=kernel=1 2 3 4 5 6 7 8 9;9 8 7 1 5 4 3 2 1;1 2 3 4 5 6 7 8 9;3 2 1 4 6 5 9 8 7;"
     "1 1 2 3 5 8 1 3 2;2 7 1 8 2 8 1 8 2;3 1 4 1 5 9 2 6 5;1 4 1 4 2 1 3 5 6;"
     "0 0 1 0 2 0 3 0 4;5 0 4 0 3 0 2 0 1;1 2 3 4 5 6 7 8 9"},
};
static const struct group gradients[] = {
    {"sobel", "sobel"},
    {"sobel x", "sobel=output=x"},
    {"scharr y", "scharr=output=y"},
    {"prewitt", "prewitt"},
    {"scharr", "scharr"},
    {"sobel direction", "sobel=output=direction"},
};
static const struct group bilaterals[] = {
    {"bilateral, radius 1", "bilateral=radius=1:sigma_range=0.2"},
    {"bilateral, radius 4", "bilateral=radius=4:sigma_space=3:sigma_range=0.1"},
    {"bilateral, radius 7", "bilateral=radius=7:sigma_space=4:sigma_range=0.3"},
};

static const struct group dogs[] = {
    {"dog", "dog"},
    {"dog, the wider first", "dog=sigma1=4:sigma2=0.1"},
    {"dog, radius 96", "dog=sigma1=20:sigma2=32"},
};

static const struct group extremes[] = {
    {"erode", "erode"},
    {"dilate, 9 x 9", "dilate=size=9"},
    {"dilate, 101", "dilate=size=101"},
    {"dilate, ellipse", "dilate=size=7:shape=ellipse"},
    {"erode, 31 x 31", "erode=size=31"},
    {"erode, cross", "erode=size=9:shape=cross"},
    {"erode, ellipse of 61", "erode=size=61:shape=ellipse"},
};
static const struct group pixelates[] = {
    {"pixelate", "pixelate"},
    {"pixelate, blocks of 5", "pixelate=size=5"},
    {"pixelate, blocks of 2", "pixelate=size=2"},
    {"pixelate, blocks of 1", "pixelate=size=1"},
    {"pixelate, blocks of 256", "pixelate=size=256"},
};

static const struct group ranks[] = {
    {"median, 3 x 3", "median"},
    {"median, 5 x 5", "median=radius=2"},
    {"rank, circle of 31", "rank=radius=15:window=circle:percentile=30"},
    {"rank, circle of 7", "rank=radius=3:window=circle:percentile=100"},
    {"median, radius 15", "median=radius=15"},
};

static const struct group thresholds[] = {
    {"threshold", "threshold"},
    {"threshold, a third", "threshold=value=0.333"},
    {"threshold, one a colour", "threshold=method=otsu"},
};

static const struct group cannies[] = {
    {"canny", "canny=sigma=0"},
    {"canny, of all", "canny=sigma=0:low=0:high=0"},
    {"canny, of much", "canny=sigma=0:low=0.1:high=2.3"},
};

static const struct group planes[] = {
    {"edges", "canny=sigma=0"},
    {"edges of a blur", "canny"},
};

static const struct group curves[] = {
    {"gamma", "gamma"},
    {"levels", "levels=black=0.1:white=0.8:gamma=0.7"},
    {"invert", "invert"},
    {"root", "gamma=gamma=2"},
};

static const struct group luts[] = {
    {"lut", "lut=table=0 64 128 255"},
    {"lut of 2 tables", "lut=table=0 1 0.5;1 0 1:max=1"},
};

static const struct group mixes[] = {
    {"grayscale", "grayscale"},
    {"colormatrix", "colormatrix=matrix=1 2 3 0;-1 0 2 0.5;0 0.5 0.5 0"},
    {"colormatrix with alpha",
     "colormatrix=matrix=1 0.2 -0.3 0.1 0;0.4 0.5 0.3 0.5 -0.2;-1 0.7 1 0.2 -0.1;0.3 0.3 0.2 0.5 "
     "0.1"},
};

static const struct group local_thresholds[] = {
    {"local threshold, 3 x 3", "threshold=method=mean:size=3"},
    {"local threshold, 11 x 11", "threshold=method=mean:size=11:offset=0.03"},
    {"local threshold, gaussian", "threshold=method=gaussian:size=5:offset=-0.05"},
    {"local threshold, 51 x 51", "threshold=method=mean:size=51:offset=-1"},
    {"local threshold, gaussian of 63", "threshold=method=gaussian:size=63"},
    {"local threshold, 255 x 255", "threshold=method=mean:size=255"},
    {"local threshold, 301 x 301", "threshold=method=mean:size=301:offset=0.2"},
    {"local threshold in a chain", "median,threshold=method=mean:size=9,erode"},
    {"local threshold, regions", "threshold=method=mean:size=7&regions=10,5,50,30"},
};

static const struct group unsharps[] = {
    {"unsharp", "unsharp"},
    {"unsharp, above a threshold", "unsharp=sigma=0.7:threshold=0.1"},
    {"unsharp, radius 15", "unsharp=sigma=5:amount=2.5"},
};

static const struct set sets[] = {
    [OPERATION_SEPARABLE] = SET(separables),
    [OPERATION_MATRIX] = SET(matrices),
    [OPERATION_GRADIENT] = SET(gradients),
    [OPERATION_BILATERAL] = SET(bilaterals),
    [OPERATION_DOG] = SET(dogs),
    [OPERATION_EXTREME] = SET(extremes),
    [OPERATION_PIXELATE] = SET(pixelates),
    [OPERATION_CURVE] = SET(curves),
    [OPERATION_LUT] = SET(luts),
    [OPERATION_MIX] = SET(mixes),
    [OPERATION_CANNY] = SET(cannies),
    [OPERATION_EDGES] = SET(planes),
    [OPERATION_RANK] = SET(ranks),
    [OPERATION_THRESHOLD] = SET(thresholds),
    [OPERATION_LOCAL_THRESHOLD] = SET(local_thresholds),
    [OPERATION_UNSHARP] = SET(unsharps),
};

enum { SETS = sizeof sets / sizeof *sets, SMALL = 3, FILTERS_MOST = 16, CASES_MOST = 300 };

/* Every number of bands, with and without alpha, all changed and not. The last is for what makes
 * each band of all: of kept ones nothing is seen. */
enum { KINDS_COMPILED_FOR = 6 };

static const unsigned kinds_compiled_for[KINDS_COMPILED_FOR] = {
    PIXELS_GREY, PIXELS_CMYK, PIXELS_GREEN, PIXELS_GREY_ALPHA, PIXELS_RGB_ALPHA_COLOR, PIXELS_RGB};

/* The parameters that a kernel is compiled for, as three levels. */
enum { FILTER, TYPE, KIND, PARTS };

struct cases {
	struct group filter[FILTERS_MOST];
	size_t filters, count;
	uint8_t part[CASES_MOST][PARTS];
};

static struct cases cases[KERNELS];

static struct trial trial_of(const struct cases *of, enum kernel kernel, const uint8_t *part)
{
	struct trial t = {.group = &of->filter[part[FILTER]],
	                  .variant = kernel + 1,
	                  .image = {.width = 300, .height = 20, .type = part[TYPE]}};

	trial_set_kind(&t, kinds_compiled_for[part[KIND]]);
	return t;
}

/* Kernels shaped for GPUs take longest to be compiled for a CPU, and most for large windows; those
 * of the studies have a test of their own, test_classic. */
static bool is_costly(const struct harness *h, enum kernel kernel)
{
	const struct kernel_row *row = kernel_row(kernel);

	return h->device.type == DEVICE_CPU && !(variant_get(kernel)->needs & VARIANT_RUN_TIME) &&
	       (row->device >= KERNEL_FOR_GPU || row->origin == KERNEL_CLASSIC);
}

static bool mixes_bands(enum kernel kernel)
{
	return kernel_row(kernel)->operations >> OPERATION_MIX & 1;
}

static void add_filters(struct cases *all, const struct set *set, size_t most)
{
	for (size_t i = 0; i < set->count && i < most; i++)
		all->filter[all->filters++] = set->group[i];
}

/* All that the kernel does; if that is costly, by small windows. */
static void find_cases(struct harness *h, enum kernel kernel, struct cases *all)
{
	*all = (struct cases){0};
	for (size_t operation = 0; operation < SETS; operation++)
		if (kernel_row(kernel)->operations >> operation & 1)
			add_filters(all, &sets[operation],
			            is_costly(h, kernel) ? SMALL : FILTERS_MOST);
	for (size_t i = 0; i < all->filters * PIXEL_TYPES * KINDS_COMPILED_FOR; i++) {
		uint8_t *part = all->part[all->count];
		struct trial t;

		part[FILTER] = (uint8_t)(i / KINDS_COMPILED_FOR / PIXEL_TYPES);
		part[TYPE] = (uint8_t)(i / KINDS_COMPILED_FOR % PIXEL_TYPES);
		part[KIND] = (uint8_t)(i % KINDS_COMPILED_FOR);
		t = trial_of(all, kernel, part);
		if (kinds_compiled_for[part[KIND]] != PIXELS_RGB || mixes_bands(kernel))
			all->count += trial_applies(h, &t);
	}
}

/* Which levels and pairs of levels the chosen cases have. */
typedef bool known_pairs[PARTS][FILTERS_MOST][PARTS][FILTERS_MOST];

/* Returns the number of new pairs of a case's levels, or of its levels from `first` on. */
static unsigned count_new(known_pairs known, const uint8_t *part, bool pairs, int first)
{
	unsigned count = 0;

	for (int i = first; i < PARTS; i++)
		for (int k = pairs ? i + 1 : i; k < (pairs ? PARTS : i + 1); k++)
			count += !known[i][part[i]][k][part[k]];
	return count;
}

static void note_case(known_pairs known, const uint8_t *part)
{
	for (int i = 0; i < PARTS; i++)
		for (int k = i; k < PARTS; k++)
			known[i][part[i]][k][part[k]] = true;
}

static void swap_cases(uint8_t *a, uint8_t *b)
{
	uint8_t part[PARTS];

	memcpy(part, a, sizeof part);
	memcpy(a, b, sizeof part);
	memcpy(b, part, sizeof part);
}

/* Alpha can be negative in floats only. */
static bool has_signed_alpha(const uint8_t *part)
{
	return part[TYPE] == PIXEL_F32 && kinds_compiled_for[part[KIND]] == PIXELS_GREY_ALPHA;
}

/* Returns the case, from `from` on, with the most that is new, and among equals with another
 * filter; the count if there is none. Cases of a costly kernel have to meet all types and kinds,
 * others also all filters; if compiling takes little, all pairs of these. */
static size_t best_case(struct harness *h, enum kernel kernel, const struct cases *all, size_t from,
                        known_pairs known)
{
	const bool pairs = h->device.type != DEVICE_CPU;
	const int least = is_costly(h, kernel) ? TYPE : FILTER;
	const uint32_t left = (uint32_t)(all->count - from), first = random_below(left);
	size_t best = all->count;
	unsigned most = 0;

	for (uint32_t i = 0; i < left; i++) {
		size_t at = from + (first + i) % left;
		unsigned gain = 2 * count_new(known, all->part[at], pairs, least);

		gain += gain ? count_new(known, all->part[at], false, FILTER) : 0;
		gain += gain && has_signed_alpha(all->part[at]);
		if (gain > most) {
			most = gain;
			best = at;
		}
	}
	return best;
}

static void choose_cases(struct harness *h, enum kernel kernel, struct cases *all)
{
	known_pairs known = {0};
	size_t chosen = 0, best;

	while (chosen < all->count &&
	       (best = best_case(h, kernel, all, chosen, known)) < all->count) {
		note_case(known, all->part[best]);
		swap_cases(all->part[best], all->part[chosen++]);
	}
	all->count = chosen;
}

static bool is_general(enum kernel kernel)
{
	return kernel_row(kernel)->origin == KERNEL_GENERAL;
}

/* Tries the cases of a kernel that is compiled for each, every one under all circumstances. */
static void try_cases(struct harness *h, enum kernel kernel, struct tally *tally)
{
	const struct cases *own = &cases[kernel];
	static struct pairwise p;
	unsigned levels[1 + CIRCUMSTANCES] = {(unsigned)own->count};

	memcpy(levels + 1, circumstance_levels, sizeof circumstance_levels);
	if (own->count && !pairwise_init(&p, levels, 1 + CIRCUMSTANCES, random_below(1u << 31)))
		abort();
	for (size_t i = 0; own->count && i < p.rows; i += (size_t)trial_every) {
		struct trial t = trial_of(own, kernel, own->part[p.row[i][0]]);

		trial_set_circumstances(&t, p.row[i] + 1,
		                        variant_get(kernel)->samples_min / t.image.bands + 1);
		tally_trial(tally, h, &t);
	}
}

/* Types that a kernel can do have met all borders, or none if it does nothing on this device. */
static void check_met(enum kernel kernel, struct tally *tally)
{
	for (unsigned type = 0; type < PIXEL_TYPES; type++)
		for (unsigned border = 0; border < BORDERS; border++) {
			if (tally->met[type][border] || !(kernel_row(kernel)->types >> type & 1) ||
			    tally->counts[0] + tally->counts[1] == 0)
				continue;
			printf("# %s never met %s with border %s\n", kernel_name(kernel),
			       pixel_type_name(type), border_name(border));
			tally->counts[0]++;
		}
}

static void try_variant(struct harness *h, enum kernel kernel, struct tally *tally)
{
	if (!is_general(kernel))
		try_cases(h, kernel, tally);
	for (size_t operation = 0; is_general(kernel) && operation < SETS; operation++)
		if (kernel_row(kernel)->operations >> operation & 1)
			set_try(h, &sets[operation], kernel + 1, tally);
	if (trial_every == 1)
		check_met(kernel, tally);
}

static bool is_wanted(enum kernel kernel, const char *only)
{
	return kernel_row(kernel)->operations && (!only || !strcmp(only, kernel_name(kernel)));
}

static void prepare(struct harness *h, const char *only, struct share share)
{
	for (enum kernel k = share.index; k < KERNELS; k += share.count) {
		if (!is_wanted(k, only) || is_general(k))
			continue;
		find_cases(h, k, &cases[k]);
		choose_cases(h, k, &cases[k]);
		for (size_t i = 0; i < cases[k].count; i++) {
			struct trial t = trial_of(&cases[k], k, cases[k].part[i]);

			trial_prepare(h, &t);
		}
	}
}

void variants_run(struct harness *h, const char *only, struct share share, size_t number,
                  int totals[2])
{
	prepare(h, only, share);
	for (enum kernel k = share.index; k < KERNELS; k += share.count) {
		struct tally tally = {0};
		char name[64];

		if (!is_wanted(k, only))
			continue;
		try_variant(h, k, &tally);
		snprintf(name, sizeof name, "variant %s", kernel_name(k));
		tally_print(&tally, number++, name, totals);
	}
	printf("1..%zu\n", number - 1);
}
