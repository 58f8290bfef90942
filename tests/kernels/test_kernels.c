/* Every kernel against the reference: random images of all types, bands and borders, sizes from
 * 1x1, tiles of several heights, by both modes of a lane.
 *
 * test_kernels [--bench] [--seed N] [--most SAMPLES] [--copy] [--platform N] [--device N]
 *              [--kernel-dir DIR] [--variant NAME] [--share I/N] [--every N] [--no-images]
 * --most bounds the images' size, --every takes but each Nth trial of a filter, for runs under a
 * checker that is slow; --copy has all tiles copied, for one that does not see what the host writes
 * into shared memory; --no-images leaves out the kernels that read image objects, as in
 * test_classic; --share runs only every N-th group, for N processes at once.
 * Prints a line a group (TAP), a line a failure, and last "N passed, N failed". */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "common/log.h"
#include "trial.h"
#include "variants.h"

/* Of a buffer's every byte Oclgrind keeps 50: less for small images. */
enum { ARENA_SIZE = 1 << 26, ARENA_SMALL = 1 << 24, SAMPLES_SMALL = 1000 };

/* Of a group of images so small, which have a large window, the reference takes longest: of its 108
 * combinations each fifth is tried, and so every type with all bands and with all borders. */
enum { SAMPLES_FEW = 5000, FEWER = 5 };

static char matrix63[1 << 16], matrix_huge[4096], matrix_gain[8192];

static const struct group groups[] = {
    {"separable, radius 0", "gaussian=size=1", 3e5},
    {"separable, radius 1", "gaussian=size=3", 3e5},
    {"separable, radius 5", "gaussian=sigma=1.4", 2e5},
    {"separable, radius 31", "box=size=63", 5e4},
    {"separable, radius 300", "gaussian=sigma=100:size=601", 2e3},
    {"lattice of 3", "gaussian=sigma=8.5", 2e4},
    {"lattice of 4, unsharp", "unsharp=sigma=20", 1e4},
    {"lattice of 4", "gaussian=sigma=23.7", 1e4},
    {"lattice of 5", "gaussian=sigma=45", 5e3},
    {"lattice of 6", "gaussian=sigma=66", 3e3},
    {"lattice of 8", "gaussian=sigma=100", 2e3},
    {"lattice in a chain", "sobel,gaussian=sigma=9,box,gaussian=sigma=10", 5e3},
    {"separable, box of 601", "box=size=601", 2e3},
    {"separable, 3 x 5", "convolve=kernel=1 2 3;2 4 6;3 6 9;2 4 6;1 2 3", 2e5},
    {"separable, 7 x 3", "convolve=kernel=1 2 3 4 3 2 1;2 4 6 8 6 4 2;1 2 3 4 3 2 1", 2e5},
    {"separable, of sum 0", "convolve=kernel=-1 0 1;-2 0 2;-1 0 1:offset=100.5", 2e5},
    {"matrix 1 x 1", "convolve=kernel=3:scale=2:offset=-20.25", 3e5},
    {"matrix 5 x 1", "convolve=kernel=1 2 3 4 7", 2e5},
    {"matrix 1 x 5", "convolve=kernel=1;2;3;4;7", 2e5},
    {"matrix 3 x 3", "convolve=kernel=1 2 3;4 5 6;7 8 0", 2e5},
    {"matrix, of sum 0", "convolve=kernel=0 1 0;1 -4 1;0 1 0:offset=128", 2e5},
    {"matrix 63 x 63", matrix63, 3e3},
    {"matrix, gain of 3e3", matrix_gain, 5e4},
    {"matrix, gain of 1e8", matrix_huge, 1e5},
    {"separable, gain of 1e8", "convolve=kernel=1e7 -1e7 1e7;-1e7 1e7 -1e7;1e7 -1e7 1e7:scale=-1",
     1e5},
    {"gradient", "sobel", 3e5},
    {"gradient, x", "sobel=output=x", 3e5},
    {"gradient, y", "sobel=output=y", 3e5},
    {"gradient, scharr", "scharr", 3e5},
    {"dog", "dog", 2e5},
    {"dog, the wider first", "dog=sigma1=5:sigma2=0.1", 1e5},
    {"dog, radius 96", "dog=sigma1=32:sigma2=20", 5e3},
    {"chain with dog", "box,dog=sigma1=2:sigma2=3,gaussian=sigma=1", 5e4},
    {"matrix, sharpen", "sharpen=amount=3", 2e5},
    {"chain of 2", "gaussian=sigma=1.4,sobel", 1e5},
    {"chain of 2, 1 x 5 and 5 x 1", "convolve=kernel=1;2;3;4;7,convolve=kernel=1 2 3 4 7", 1e5},
    {"chain of 3", "box=size=5,convolve=kernel=1 2 3;4 5 6;7 8 0,gaussian=size=3", 5e4},
    {"chain of 4", "sobel=output=y,gaussian=sigma=3,box=size=9,sobel=output=x", 3e4},
};

enum { GROUPS = sizeof groups / sizeof *groups };

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

/* Crop needs an image larger than the window, but not so large that the reference takes long. */
static uint32_t crop_extra(const struct group *group, enum border border)
{
	if (border != BORDER_CROP)
		return 0;
	if (strstr(group->name, "lattice"))
		return strstr(group->chain, ",") ? 250 : strstr(group->chain, "=8.5") ? 116 : 0;
	return strstr(group->name, "63") || strstr(group->name, "31") ? 62 : 20;
}

/* All types, bands and borders of a filter. */
static void run_group(struct harness *h, const struct group *group, size_t number, int totals[2])
{
	int counts[2] = {0, 0};
	struct trial t = {.group = group};
	int step = trial_every * (group->samples_most <= SAMPLES_FEW ? FEWER : 1);

	for (int i = 0; i < (int)PIXEL_TYPES * 6 * (int)BORDERS; i += step) {
		static const uint32_t bands[6] = {1, 2, 3, 4, 2, 4};
		int result;

		t.image = (struct image){.type = (uint32_t)i % PIXEL_TYPES};
		t.image.bands = bands[i / PIXEL_TYPES % 6];
		t.image.alpha = i / PIXEL_TYPES % 6 >= 4;
		t.border = (enum border)(i / (int)(PIXEL_TYPES * 6));
		if (t.image.alpha && !group_alpha_is_stable(group))
			continue;
		trial_choose(&t, 0, crop_extra(group, t.border));
		result = trial_run(h, &t);
		if (result >= 0)
			counts[result]++;
	}
	printf("%s %zu - %s (%d images)\n", counts[0] ? "not ok" : "ok", number, group->name,
	       counts[0] + counts[1]);
	fflush(stdout);
	totals[0] += counts[0];
	totals[1] += counts[1];
}

/* Large odd images, where a row is many blocks and a launch many groups. */
static void run_large(struct harness *h, size_t number, int totals[2])
{
	static const char *const names[] = {"separable, radius 5", "matrix 3 x 3", "gradient",
	                                    "chain of 2"};
	int counts[2] = {0, 0};

	for (size_t i = 0; i < GROUPS * 2; i++) {
		struct trial t = {.group = &groups[i / 2],
		                  .image = {.width = 3001, .height = 301, .bands = i % 2 ? 3 : 4},
		                  .border = BORDER_REFLECT101,
		                  .tile_rows = 128,
		                  .mode = i % 2 ? LANE_COPY : LANE_ZERO_COPY};

		t.image.alpha = i % 2 == 0;
		for (size_t n = 0; n < sizeof names / sizeof *names; n++)
			if (!strcmp(names[n], t.group->name))
				counts[trial_run(h, &t) != 0]++;
	}
	printf("%s %zu - large images (%d images)\n", counts[0] ? "not ok" : "ok", number,
	       counts[0] + counts[1]);
	totals[0] += counts[0];
	totals[1] += counts[1];
}

/* The part of the groups of general kernels that one of several processes runs. */
static int run_tests(struct harness *h, const char *variant, struct share share)
{
	int totals[2] = {0, 0};

	write_matrix(matrix63, sizeof matrix63, 63, 1, 100, "");
	write_matrix(matrix_gain, sizeof matrix_gain, 15, -20, 41, ":scale=1");
	write_matrix(matrix_huge, sizeof matrix_huge, 5, -10000000, 20000001, ":scale=1");
	for (size_t i = share.index; !variant && i < GROUPS; i += share.count)
		run_group(h, &groups[i], i + 1, totals);
	if (!variant && trial_samples_most > 1e6 && share.index == 0)
		run_large(h, GROUPS + 1, totals);
	variants_run(h, variant, share, GROUPS + 2, totals);
	printf("%d passed, %d failed\n", totals[1], totals[0]);
	return totals[0] ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"bench", no_argument, NULL, 'b'},
	                                        {"seed", required_argument, NULL, 's'},
	                                        {"most", required_argument, NULL, 'm'},
	                                        {"copy", no_argument, NULL, 'c'},
	                                        {"platform", required_argument, NULL, 'p'},
	                                        {"device", required_argument, NULL, 'd'},
	                                        {"kernel-dir", required_argument, NULL, 'k'},
	                                        {"variant", required_argument, NULL, 'v'},
	                                        {"share", required_argument, NULL, 'S'},
	                                        {"every", required_argument, NULL, 'e'},
	                                        {"no-images", no_argument, NULL, 'n'},
	                                        {0}};
	const char *kernel_dir = NULL, *variant = NULL;
	struct harness h;
	unsigned platform = 0, device = 0;
	struct share share = {0, 1};
	bool bench = false, images = true;
	uint64_t arena_size;
	int c, status = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 'b')
			bench = true;
		else if (c == 's')
			trial_seed = strtoull(optarg, NULL, 10);
		else if (c == 'm')
			trial_samples_most = strtod(optarg, NULL);
		else if (c == 'c')
			trial_only_copy = true;
		else if (c == 'p')
			platform = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'd')
			device = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'k')
			kernel_dir = optarg;
		else if (c == 'v')
			variant = optarg;
		else if (c == 'S' && sscanf(optarg, "%u/%u", &share.index, &share.count) == 2 &&
		         share.index < share.count)
			continue;
		else if (c == 'e' && atoi(optarg) > 0)
			trial_every = atoi(optarg);
		else if (c == 'n')
			images = false;
		else
			return 2;
	log_init("test_kernels", LOG_LEVEL_WARNING, LOG_FORMAT_AUTO);
	arena_size = bench                                 ? bench_arena_size()
	             : trial_samples_most <= SAMPLES_SMALL ? ARENA_SMALL
	                                                   : ARENA_SIZE;
	if (!harness_init(&h, platform, device, arena_size, kernel_dir))
		return 1;
	h.device.images = h.device.images && images;
	if (bench)
		bench_run(&h);
	else
		status = run_tests(&h, variant, share);
	harness_fini(&h);
	return status;
}
