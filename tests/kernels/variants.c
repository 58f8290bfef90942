/* Each kernel that does an operation, forced, on filters of that operation: all its types, bands
 * with and without alpha or kept bands, several radii, random borders. A program for each of these
 * takes some time to be built, so all of a variant are asked for first. */
#include "variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES = 6 };

/* The filters that a variant is tried on, by its operation; the first are those of small radii. */
static const struct group separables[] = {
    {"radius 1", "gaussian=size=3", 2e5},
    {"radius 2", "gaussian=sigma=1.1:size=5", 2e5},
    {"radius 6", "gaussian=sigma=2", 1e5},
    {"radius 15", "gaussian=sigma=5", 6e4},
    {"3 x 5, signed", "convolve=kernel=1 -2 3;2 -4 6;3 -6 9;2 -4 6;1 -2 3:offset=20", 2e5},
    {"radius 25", "box=size=51", 4e4},
};
static const struct group matrices[] = {
    {"matrix 3 x 3", "convolve=kernel=1 2 3;4 5 6;7 8 0", 2e5},
    {"matrix 3 x 3, signed", "laplacian", 2e5},
    {"matrix 5 x 5", "convolve=kernel=1 2 3 4 5;2 9 4 7 6;3 1 8 0 7;4 4 2 7 1;5 6 7 8 0", 1e5},
    {"matrix 7 x 3", "convolve=kernel=1 2 3 4 5 6 7;3 1 4 1 5 9 2;2 7 1 8 2 8 1:offset=3", 1e5},
    {"matrix 9 x 11",
     "convolve=kernel=1 2 3 4 5 6 7 8 9;9 8 7 1 5 4 3 2 1;1 2 3 4 5 6 7 8 9;3 2 1 4 6 5 9 8 7;"
     "1 1 2 3 5 8 1 3 2;2 7 1 8 2 8 1 8 2;3 1 4 1 5 9 2 6 5;1 4 1 4 2 1 3 5 6;"
     "0 0 1 0 2 0 3 0 4;5 0 4 0 3 0 2 0 1;1 2 3 4 5 6 7 8 9",
     5e4},
};
static const struct group gradients[] = {
    {"sobel", "sobel", 2e5},
    {"sobel x", "sobel=output=x", 2e5},
    {"scharr y", "scharr=output=y", 2e5},
    {"prewitt", "prewitt", 2e5},
    {"sobel direction", "sobel=output=direction", 1e5},
};
static const struct group bilaterals[] = {
    {"bilateral, radius 1", "bilateral=radius=1:sigma_range=0.2", 5e4},
    {"bilateral, radius 4", "bilateral=radius=4:sigma_space=3:sigma_range=0.1", 2e4},
    {"bilateral, radius 7", "bilateral=radius=7:sigma_space=4:sigma_range=0.3", 8e3},
};

static const struct group dogs[] = {
    {"dog", "dog", 1e5},
    {"dog, the wider first", "dog=sigma1=4:sigma2=0.1", 5e4},
    {"dog, radius 96", "dog=sigma1=20:sigma2=32", 5e3},
};

static const struct {
	const struct group *group;
	size_t count;
} sets[] = {
    [OPERATION_SEPARABLE] = {separables, sizeof separables / sizeof *separables},
    [OPERATION_MATRIX] = {matrices, sizeof matrices / sizeof *matrices},
    [OPERATION_GRADIENT] = {gradients, sizeof gradients / sizeof *gradients},
    [OPERATION_BILATERAL] = {bilaterals, sizeof bilaterals / sizeof *bilaterals},
    [OPERATION_DOG] = {dogs, sizeof dogs / sizeof *dogs},
};

enum { SETS = sizeof sets / sizeof *sets };

/* The kinds of pixels: bands, alpha, and the channels that are filtered. */
static const struct {
	uint32_t bands, alpha, channels;
} kinds[] = {
    {1, 0, CHANNELS_ALL},   {2, 1, CHANNELS_ALL}, {3, 0, CHANNELS_ALL}, {4, 0, CHANNELS_ALL},
    {3, 0, CHANNELS_GREEN}, {4, 1, CHANNELS_ALL}, {2, 0, CHANNELS_ALL},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

struct progress {
	struct harness *h;
	enum kernel kernel;
	bool prepare;   /* only ask for programs */
	uint64_t first; /* where to begin leaving out */
	int counts[2];
};

static void run_kind(struct progress *p, const struct group *group, enum pixel_type type,
                     size_t kind)
{
	struct trial t = {.group = group,
	                  .variant = p->kernel + 1,
	                  .channels = kinds[kind].channels,
	                  .image = {.width = 300,
	                            .height = 20,
	                            .type = type,
	                            .bands = kinds[kind].bands,
	                            .alpha = kinds[kind].alpha}};
	uint32_t least = variant_get(p->kernel)->samples_min / t.image.bands + 1;

	if (p->prepare) {
		trial_prepare(p->h, &t);
		return;
	}
	for (int i = 0; i < IMAGES; i += trial_every) {
		int result;

		t.border = (enum border)((size_t)i % BORDERS);
		trial_choose(&t, least, t.border == BORDER_CROP ? 52 : 0);
		result = trial_run(p->h, &t);
		if (result >= 0)
			p->counts[result]++;
	}
}

/* True if the kernel's row allows this kind of pixels. */
static bool is_allowed(const struct kernel_row *row, enum pixel_type type, size_t kind)
{
	return row->types >> type & 1 && row->bands >> kinds[kind].bands & 1;
}

/* How many combinations of filter, type and kind of pixels there are. */
static size_t combinations(const struct kernel_row *row)
{
	size_t groups = 0, allowed = 0;

	for (size_t operation = 0; operation < SETS; operation++)
		groups += row->operations >> operation & 1 ? sets[operation].count : 0;
	for (enum pixel_type type = 0; type < PIXEL_TYPES; type++)
		for (size_t kind = 0; kind < KINDS; kind++)
			allowed += is_allowed(row, type, kind);
	return groups * allowed;
}

/* Of how many combinations one is tried, where each costs a program: fewer if it is made for GPUs
 * and compiled for a CPU, which takes longer, or has a test of its own, test_classic. The seed says
 * which. */
static size_t sparseness(const struct device *device, const struct kernel_row *row)
{
	bool fewer = row->device >= KERNEL_FOR_GPU || row->origin == KERNEL_CLASSIC;
	size_t wanted = device->type != DEVICE_CPU ? 40 : fewer ? 5 : 10;
	size_t all = combinations(row);

	return row->origin == KERNEL_GENERAL || all < wanted ? 1 : all / wanted;
}

static void run_set(struct progress *p, size_t operation, size_t *turn)
{
	const struct kernel_row *row = kernel_row(p->kernel);

	for (size_t g = 0; g < sets[operation].count; g++)
		for (enum pixel_type type = 0; type < PIXEL_TYPES; type++)
			for (size_t kind = 0; kind < KINDS; kind++)
				if (is_allowed(row, type, kind) &&
				    (*turn)++ % sparseness(&p->h->device, row) == 0)
					run_kind(p, &sets[operation].group[g], type, kind);
}

/* All that the kernel can do. */
static void run_all(struct progress *p)
{
	size_t turn = (size_t)p->first;

	for (size_t operation = 0; operation < SETS; operation++)
		if (kernel_row(p->kernel)->operations >> operation & 1)
			run_set(p, operation, &turn);
}

static bool is_wanted(enum kernel kernel, const char *only)
{
	return kernel_row(kernel)->operations && (!only || !strcmp(only, kernel_name(kernel)));
}

void variants_run(struct harness *h, const char *only, struct share share, size_t number,
                  int totals[2])
{
	const uint64_t first = trial_seed;
	struct progress p[2] = {{.h = h, .prepare = true, .first = first}, {.h = h}};

	for (enum kernel k = share.index; k < KERNELS; k += share.count)
		if (is_wanted(k, only)) {
			p[0].kernel = k;
			run_all(&p[0]);
		}
	for (enum kernel k = share.index; k < KERNELS; k += share.count) {
		if (!is_wanted(k, only))
			continue;
		p[1] = (struct progress){.h = h, .kernel = k, .first = first};
		run_all(&p[1]);
		printf("%s %zu - variant %s (%d images)\n", p[1].counts[0] ? "not ok" : "ok",
		       number++, kernel_name(k), p[1].counts[0] + p[1].counts[1]);
		fflush(stdout);
		totals[0] += p[1].counts[0];
		totals[1] += p[1].counts[1];
	}
	printf("1..%zu\n", number - 1);
}
