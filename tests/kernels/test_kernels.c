/* Every kernel against the reference: random images of all types, bands and borders, of shapes from
 * 1x1, in tiles of several heights, by both modes of a lane; of all these and of the filters of a
 * set, pairs meet (pairwise.h).
 *
 * test_kernels [--bench] [--digests] [--seed N] [--most SAMPLES] [--copy] [--platform N] [--device
 * N]
 *              [--kernel-dir DIR] [--variant NAME] [--share I/N] [--every N] [--no-images]
 * --seed makes other trials; --most bounds the images' size, --every takes but each Nth trial, for
 * runs under a checker that is slow; --copy has all tiles copied, for one that does not see what
 * the host writes into shared memory; --no-images leaves out the kernels that read image objects,
 * as in test_classic; --share runs only every N-th set, for N processes at once.
 * Prints a line a set (TAP), a line a failure, and last "N passed, N failed". */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench.h"
#include "general.h"
#include "sets.h"
#include "variants.h"

/* Oclgrind keeps 50 bytes for every byte of a buffer: less for small images. */
enum { ARENA_SIZE = 1 << 26, ARENA_SMALL = 1 << 24, SAMPLES_SMALL = 1000 };

static char matrix63[1 << 16], matrix_huge[4096], matrix_gain[8192];

/* Filters of a kind are tried together: each meets every circumstance. */
static const struct group separables[] = {
    {"separable, radius 0", "gaussian=size=1"},
    {"separable, radius 1", "gaussian=size=3"},
    {"separable, radius 5", "gaussian=sigma=1.4"},
    {"separable, radius 31", "box=size=63"},
    {"separable, 3 x 5", "convolve=kernel=1 2 3;2 4 6;3 6 9;2 4 6;1 2 3"},
    {"separable, 7 x 3", "convolve=kernel=1 2 3 4 3 2 1;2 4 6 8 6 4 2;1 2 3 4 3 2 1"},
    {"separable, of sum 0", "convolve=kernel=-1 0 1;-2 0 2;-1 0 1:offset=100.5"},
};
static const struct group matrices[] = {
    {"matrix 1 x 1", "convolve=kernel=3:scale=2:offset=-20.25"},
    {"matrix 5 x 1", "convolve=kernel=1 2 3 4 7"},
    {"matrix 1 x 5", "convolve=kernel=1;2;3;4;7"},
    {"matrix 3 x 3", "convolve=kernel=1 2 3;4 5 6;7 8 0"},
    {"matrix, of sum 0", "convolve=kernel=0 1 0;1 -4 1;0 1 0:offset=128"},
};
static const struct group gains[] = {
    {"matrix, gain of 3e3", matrix_gain},
    {"matrix, gain of 1e8", matrix_huge},
    {"separable, gain of 1e8", "convolve=kernel=1e7 -1e7 1e7;-1e7 1e7 -1e7;1e7 -1e7 1e7:scale=-1"},
    {"matrix, sharpen", "sharpen=amount=3"},
};
static const struct group gradients[] = {
    {"gradient", "sobel"},
    {"gradient, x", "sobel=output=x"},
    {"gradient, y", "sobel=output=y"},
    {"gradient, scharr", "scharr"},
};
static const struct group dogs[] = {
    {"dog", "dog"},
    {"dog, the wider first", "dog=sigma1=5:sigma2=0.1"},
    {"dog, radius 96", "dog=sigma1=32:sigma2=20"},
};
static const struct group extremes[] = {
    {"erode, 1 x 1", "erode=size=1"},
    {"erode", "erode"},
    {"dilate, 5 x 5", "dilate=size=5"},
    {"dilate, 101 x 101", "dilate=size=101"},
    {"erode, 67 x 67", "erode=size=67"},
    {"erode, ellipse of 3", "erode=shape=ellipse"},
    {"dilate, ellipse of 31", "dilate=size=31:shape=ellipse"},
    {"erode, cross of 17", "erode=size=17:shape=cross"},
};
static const struct group ranks[] = {
    {"median, 3 x 3", "median"},
    {"median, 5 x 5", "median=radius=2"},
    {"median, circle of 5", "median=radius=2:window=circle"},
    {"median, radius 8", "median=radius=8"},
    {"rank, the smallest of radius 15", "rank=radius=15:percentile=0"},
    {"rank, of a circle", "rank=radius=4:window=circle:percentile=77.5"},
    {"rank in a chain", "box,median,rank=percentile=80,sobel"},
};
static const struct group thresholds[] = {
    {"threshold", "threshold"},
    {"threshold, a mean", "threshold=method=mean:size=5:offset=0.1"},
    {"threshold, the mean", "threshold=method=mean"},
    {"threshold, a gaussian", "threshold=method=gaussian:size=31:offset=-0.05"},
    {"threshold in a chain", "median,threshold=value=0.4,erode"},
};
static const struct group morphologies[] = {
    {"open", "open"},
    {"close, 21 x 21", "close=size=21"},
    {"tophat", "tophat=size=5"},
    {"blackhat, ellipse", "blackhat=size=9:shape=ellipse"},
    {"morphgradient", "morphgradient"},
    {"morphgradient, cross", "morphgradient=size=7:shape=cross"},
    {"chain with morphology", "box,tophat=size=7,morphgradient,erode=size=5"},
};
static const struct group pixelates[] = {
    {"pixelate", "pixelate"},
    {"pixelate, blocks of 1", "pixelate=size=1"},
    {"pixelate, blocks of 7", "pixelate=size=7"},
    {"pixelate, blocks of 100", "pixelate=size=100"},
    {"pixelate in a chain", "box,pixelate=size=6,gaussian=sigma=1"},
};
static const struct group lines[] = {
    {"gaussian of two sigmas", "gaussian=sigma_x=20:sigma_y=0.7"},
    {"highpass", "highpass=sigma=2"},
    {"log", "log=sigma=2"},
    {"log, radius 28", "log=sigma=7"},
    {"motion", "motion=length=31.5:angle=20"},
};
static const struct group curves[] = {
    {"gamma", "gamma"},
    {"gamma, darker", "gamma=gamma=0.1"},
    {"levels", "levels=black=0.2:white=0.7:gamma=1.7"},
    {"levels, steep", "levels=black=0.5:white=0.51"},
    {"linear", "linear=gain=-3.5:bias=1.25"},
    {"linear, steep", "linear=gain=100:bias=-45"},
    {"invert", "invert"},
    {"chain with curves", "gaussian=sigma=1,gamma=gamma=1.5,invert,box,linear=gain=1.5"},
};
static const struct group colours[] = {
    {"linear, numbers for each colour", "linear=gain=1.5 -2 0.25:bias=0 1 -0.1"},
    {"lut of 4 entries", "lut=table=0 200 30 255"},
    {"lut of 3 tables", "lut=table=0 0.5 1 0 0.25;1 0 0 0 0;0 1 0 1 0.5:max=1"},
    {"lut, points", "lut=points=10 0;64 40;65 200;255 255"},
    {"thresholds and tables of a whole image", "threshold=method=otsu,equalize"},
    {"grayscale", "grayscale"},
    {"grayscale, mean", "grayscale=weights=mean"},
    {"colormatrix", "colormatrix=matrix=0.4 0.8 0.2 0;-1 2 0.5 -0.25;9 -9 0.5 0.5"},
    {"colormatrix with alpha",
     "colormatrix=matrix=1 0 0 0 0;0 0.5 0 0.5 0;0 0 1 0 -0.1;0.3 0.3 0 0.5 0.1"},
    {"chain with colours", "box,lut=table=255 90 0,grayscale=weights=bt709,lut=points=0 9;200 255"},
};
static const struct group cannies[] = {
    {"canny", "canny=sigma=0"},
    {"canny of a blur", "gaussian=sigma=1.4,canny=sigma=0:low=0.05:high=0.1"},
    {"canny in a chain", "median,canny=sigma=0:low=0:high=0"},
    {"edges", "canny=sigma=0"},
    {"edges in a chain", "box,canny=sigma=1,dilate"},
    {"edges in regions", "canny&regions=3,2,20,9;ellipse:10,-4,41,30&feather=5"},
};
static const struct group regions[] = {
    {"regions", "box=size=5&regions=3,2,20,9;ellipse:10,-4,41,30;-9,5,10,400;30,6,1,1"},
    {"regions, inverted",
     "gaussian=sigma=1.4,sobel&regions=4,4,11,11;ellipse:20,0,300,90&invert=1"},
    {"regions, feathered",
     "pixelate=size=5&regions=12,3,20,1;ellipse:1,1,8,12;ellipse:40,9,200,9&feather=7"},
    {"regions, feathered and inverted",
     "dilate=size=9&regions=ellipse:0,0,64,20;60,0,9,9&feather=30&invert=1"},
    {"regions, far away", "sharpen&regions=900000,900000,1,1&feather=1000"},
};
static const struct group chains[] = {
    {"chain with dog", "box,dog=sigma1=2:sigma2=3,gaussian=sigma=1"},
    {"chain of 2", "gaussian=sigma=1.4,sobel"},
    {"chain of 2, 1 x 5 and 5 x 1", "convolve=kernel=1;2;3;4;7,convolve=kernel=1 2 3 4 7"},
    {"chain of 3", "box=size=5,convolve=kernel=1 2 3;4 5 6;7 8 0,gaussian=size=3"},
    {"chain of 4", "sobel=output=y,gaussian=sigma=3,box=size=9,sobel=output=x"},
};
static const struct group lattices[] = {
    {"lattice of 3", "gaussian=sigma=8.5"},
    {"lattice of 4, unsharp", "unsharp=sigma=20"},
    {"lattice of 4", "gaussian=sigma=23.7"},
    {"lattice of 5", "gaussian=sigma=45"},
    {"lattice of 6", "gaussian=sigma=66"},
    {"lattice of 8", "gaussian=sigma=100"},
    {"lattice in a chain", "sobel,gaussian=sigma=9,box,gaussian=sigma=10"},
};
static const struct group windows[] = {
    {"separable, radius 300", "gaussian=sigma=100:size=601"},
    {"separable, box of 601", "box=size=601"},
    {"matrix 63 x 63", matrix63},
};

static const struct {
	const char *name;
	struct set set;
} sets[] = {
    {"separable", SET(separables)},
    {"matrix", SET(matrices)},
    {"large coefficients", SET(gains)},
    {"gradient", SET(gradients)},
    {"dog", SET(dogs)},
    {"extreme", SET(extremes)},
    {"morphology", SET(morphologies)},
    {"pixelate", SET(pixelates)},
    {"rank", SET(ranks)},
    {"threshold", SET(thresholds)},
    {"lines", SET(lines)},
    {"curves", SET(curves)},
    {"colours", SET(colours)},
    {"canny", SET(cannies)},
    {"regions", SET(regions)},
    {"chains", SET(chains)},
    {"lattices", SET(lattices)},
    {"large windows", SET(windows)},
};

enum { SETS = sizeof sets / sizeof *sets, LARGE_IMAGES = SETS, GENERAL, PARTS };

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

/* Large odd images, where a launch is many groups both ways. */
static void run_large(struct harness *h, struct tally *tally)
{
	static const struct group groups[] = {
	    {"large, separable", "gaussian=sigma=1.4"},
	    {"large, matrix", "convolve=kernel=1 2 3;4 5 6;7 8 0"},
	    {"large, gradient", "sobel"},
	    {"large, chain", "gaussian=sigma=1.4,sobel"},
	};

	for (size_t i = 0; i < sizeof groups / sizeof *groups * 2; i++) {
		struct trial t = {.group = &groups[i / 2],
		                  .image = {.width = 3001, .height = 101, .bands = i % 2 ? 3 : 4},
		                  .border = BORDER_REFLECT101,
		                  .tile_rows = 64,
		                  .mode = i % 2 ? LANE_COPY : LANE_ZERO_COPY};

		t.image.alpha = i % 2 == 0;
		tally_trial(tally, h, &t);
	}
}

/* The sets, then the large images, and at last the general kernels' promise. */
static void run_part(struct harness *h, size_t part, int totals[2])
{
	struct tally tally = {0};

	if (part == GENERAL) {
		if (trial_samples_most > 1e6)
			general_run(h, false, PARTS + 1000, totals);
		return;
	}
	if (part < SETS)
		set_try(h, &sets[part].set, 0, &tally);
	else if (trial_samples_most > 1e6)
		run_large(h, &tally);
	else
		return;
	tally_print(&tally, part + 1, part < SETS ? sets[part].name : "large images", totals);
}

/* Runs one process's share of the parts and of the variants. */
static int run_tests(struct harness *h, const char *variant, struct share share)
{
	int totals[2] = {0, 0};

	write_matrix(matrix63, sizeof matrix63, 63, 1, 100, "");
	write_matrix(matrix_gain, sizeof matrix_gain, 15, -20, 41, ":scale=1");
	write_matrix(matrix_huge, sizeof matrix_huge, 5, -6000000, 12000001, ":scale=1");
	for (size_t i = share.index; !variant && i < PARTS; i += share.count)
		run_part(h, i, totals);
	variants_run(h, variant, share, PARTS + 1, totals);
	printf("%d passed, %d failed\n", totals[1], totals[0]);
	return totals[0] ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"bench", no_argument, NULL, 'b'},
	                                        {"digests", no_argument, NULL, 'g'},
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
	bool bench = false, digests = false, images = true;
	uint64_t arena_size;
	int c, status = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 'b')
			bench = true;
		else if (c == 'g')
			digests = true;
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
	if (!images)
		for (int type = 0; type < PIXEL_TYPES; type++)
			h.device.image_bands[type] = h.device.share_bands[type] = 0;
	if (bench)
		bench_run(&h);
	else if (digests)
		general_run(&h, true, 1, (int[2]){0});
	else
		status = run_tests(&h, variant, share);
	harness_fini(&h);
	return status;
}
