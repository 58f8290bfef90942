/* Every kernel against the reference: random images of all types, bands and borders, sizes from
 * 1x1, tiles of several heights, by both modes of a lane.
 *
 * test_kernels [--bench] [--seed N] [--most SAMPLES] [--copy] [--device N]
 *              [--kernel-dir DIR]
 * --most bounds the images' size, for runs under a checker that is slow; --copy has all tiles
 * copied, for one that does not see what the host writes into shared memory.
 * Prints a line a group (TAP), a line a failure, and last "N passed, N failed". */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "common/difference.h"
#include "common/log.h"
#include "harness.h"

enum { ARENA_SIZE = 1 << 26 };

/* In a chain, how much of the result may be off by more than 1, because an intermediate result was
 * off by 1 and the next filter enlarged that. */
static const double SHARE_BEYOND_1 = 0.1;

struct group {
	const char *name;
	const char *chain;
	double samples_most; /* of an image, so that the reference takes no longer than the rest */
};

static char matrix63[1 << 16], matrix_huge[4096], matrix_gain[8192];

static const struct group groups[] = {
    {"separable, radius 0", "gaussian=size=1", 3e5},
    {"separable, radius 1", "gaussian=size=3", 3e5},
    {"separable, radius 5", "gaussian=sigma=1.4", 2e5},
    {"separable, radius 31", "box=size=63", 5e4},
    {"separable, radius 300", "gaussian=sigma=100:size=601", 2e3},
    {"lattice of 3", "gaussian=sigma=8.5", 2e4},
    {"lattice of 3, unsharp", "unsharp=sigma=20", 1e4},
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
    {"matrix, sharpen", "sharpen=amount=3", 2e5},
    {"chain of 2", "gaussian=sigma=1.4,sobel", 1e5},
    {"chain of 2, 1 x 5 and 5 x 1", "convolve=kernel=1;2;3;4;7,convolve=kernel=1 2 3 4 7", 1e5},
    {"chain of 3", "box=size=5,convolve=kernel=1 2 3;4 5 6;7 8 0,gaussian=size=3", 5e4},
    {"chain of 4", "sobel=output=y,gaussian=sigma=3,box=size=9,sobel=output=x", 3e4},
};

enum { GROUPS = sizeof groups / sizeof *groups };

/* Negative weights can leave next to no alpha to divide by; that case has no stable answer. */
static bool alpha_is_stable(const struct group *group)
{
	return !strstr(group->name, "gain") && !strstr(group->name, "sharpen") &&
	       !strstr(group->chain, "63:");
}

static uint64_t seed = 1;
static double samples_most = 1e9;
static bool only_copy;

static uint32_t random_below(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % n);
}

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

/* Puts a few pixels that are not numbers into an image of floats: they must not spread further than
 * the window. */
static void spoil(const struct image *image, float *samples, size_t count)
{
	if (image->type == PIXEL_F32 && !image->alpha)
		for (int i = 0; i < 3; i++)
			samples[random_below((uint32_t)count)] = i ? NAN : INFINITY;
}

/* Random pixels; now and then flat areas at both ends of the range. In chains alpha stays large:
 * an intermediate alpha that is off by 1 would else change the colour by more. */
static void *random_image(const struct image *image, bool alpha_large)
{
	size_t count = (size_t)image_size(image) / pixel_type_size(image->type);
	void *pixels = malloc((size_t)image_size(image));
	uint32_t kind = random_below(4);

	for (size_t i = 0; pixels && i < count; i++) {
		bool alpha = image->alpha && i % image->bands == image->bands - 1;
		double share = random_below(65536) / 65535.0;

		if (kind == 0)
			share = (double)(i / 37 % 2);
		else if (alpha && random_below(4) == 0)
			share = 0;
		if (alpha && alpha_large)
			share = 0.75 + share / 4;
		if (image->type == PIXEL_U8)
			((uint8_t *)pixels)[i] = (uint8_t)(share * 255);
		else if (image->type == PIXEL_U16)
			((uint16_t *)pixels)[i] = (uint16_t)(share * 65535);
		else
			((float *)pixels)[i] = (float)(alpha ? share : 2 * share - 1);
	}
	if (pixels && kind == 1)
		spoil(image, pixels, count);
	return pixels;
}

/* One image: everything that can be varied. */
struct trial {
	const struct group *group;
	struct image image;
	enum border border;
	uint32_t tile_rows;
	enum lane_mode mode;
};

static void report(const struct trial *t, const char *what)
{
	printf("# FAILED %s: %ux%ux%u %s alpha %u, %s, tiles of %u rows, %s: %s\n", t->group->name,
	       t->image.width, t->image.height, t->image.bands, pixel_type_name(t->image.type),
	       t->image.alpha, border_name(t->border), t->tile_rows,
	       t->mode == LANE_COPY ? "copied" : "in place", what);
}

/* Compares all samples; reports the first that is off, and how many are off by more than 1. */
static bool compare(const struct trial *t, const struct reference *wanted, const void *got)
{
	size_t pitch = wanted->window.width * image_pixel_size(&t->image);
	struct difference d = {0};
	char text[160];

	difference_add(&d, wanted, got, pitch);
	if (d.mismatches) {
		snprintf(text, sizeof text, "at %u,%u band %u: %.9g is not %.9g +- %.3g", d.x, d.y,
		         d.band, d.got, d.wanted, d.slack);
		report(t, text);
		return false;
	}
	if (t->image.type == PIXEL_F32 ||
	    (double)d.beyond_1 <= SHARE_BEYOND_1 * (double)d.samples + 8)
		return true;
	snprintf(text, sizeof text, "%llu of %llu samples are off by more than 1",
	         (unsigned long long)d.beyond_1, (unsigned long long)d.samples);
	report(t, text);
	return false;
}

static bool try_plan(struct harness *h, const struct trial *t, const struct plan *plan,
                     const void *in)
{
	struct reference wanted;
	void *got = malloc((size_t)image_size(&t->image));
	bool ok = false;

	if (!got || reference_filter(&plan->chain, &t->image, in, &wanted))
		abort();

	struct outcome outcome = harness_filter(h, t->mode, plan, in, t->tile_rows, got);

	if (outcome.error)
		report(t, outcome.error == ERR_DEVICE ? opencl_error_name(outcome.code)
		                                      : error_slug(outcome.error));
	else if (outcome.guard_broken)
		report(t, "bytes outside the result were written");
	else
		ok = compare(t, &wanted, got);
	free(got);
	reference_fini(&wanted);
	return ok;
}

static void parse_chain(struct chain *chain, const struct trial *t)
{
	struct problem problem;

	chain_init(chain);
	if (chain_parse(chain, t->group->chain, &problem)) {
		fprintf(stderr, "%s: %s\n", t->group->chain, problem.detail);
		abort();
	}
	chain->border = t->border;
	if (t->image.type != PIXEL_F32 && random_below(2)) {
		chain->border_values = 1;
		chain->border_value[0] = random_below(256);
	}
}

/* Runs a trial; 1 if it passed, 0 if not, -1 if there is nothing to do. */
static int try(struct harness *h, const struct trial *t)
{
	static struct chain chain;
	struct problem problem;
	uint32_t width, height;
	struct plan *plan = NULL;
	void *in;
	bool ok;

	parse_chain(&chain, t);
	if (chain_output_size(&chain, &t->image, &width, &height, &problem))
		return -1;
	in = random_image(&t->image, chain.count > 1 || !alpha_is_stable(t->group));
	if (!in || plan_new(h->programs, &chain, &t->image, NULL, NULL, &plan))
		abort();
	ok = try_plan(h, t, plan, in);
	plan_free(&plan);
	free(in);
	return ok;
}

static void choose_size(struct trial *t, uint32_t extra)
{
	static const uint32_t sides[] = {1,  2,  3,  5,  7,   8,   15,  16,  17,
	                                 31, 33, 64, 67, 129, 257, 601, 1003};
	const uint32_t count = sizeof sides / sizeof *sides;
	double most = fmin(t->group->samples_most, samples_most) / t->image.bands;

	do {
		t->image.width = sides[random_below(count)] + extra;
		t->image.height = sides[random_below(count)] + extra;
	} while ((double)t->image.width * t->image.height > most &&
	         (t->image.width > 1 + extra || t->image.height > 1 + extra));
}

static void choose_tiles(struct trial *t)
{
	static const uint32_t rows[] = {1, 3, 8, 20, 61, 5000};

	t->tile_rows = rows[random_below(sizeof rows / sizeof *rows)];
	if (t->tile_rows < 8 && t->image.height > 100)
		t->tile_rows += 40;
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

	for (int i = 0; i < (int)PIXEL_TYPES * 6 * (int)BORDERS; i++) {
		static const uint32_t bands[6] = {1, 2, 3, 4, 2, 4};
		int result;

		t.image = (struct image){.type = (uint32_t)i % PIXEL_TYPES};
		t.image.bands = bands[i / PIXEL_TYPES % 6];
		t.image.alpha = i / PIXEL_TYPES % 6 >= 4;
		t.border = (enum border)(i / (int)(PIXEL_TYPES * 6));
		t.mode = random_below(2) || only_copy ? LANE_COPY : LANE_ZERO_COPY;
		if (t.image.alpha && !alpha_is_stable(group))
			continue;
		choose_size(&t, crop_extra(group, t.border));
		choose_tiles(&t);
		result = try(h, &t);
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
				counts[try(h, &t) != 0]++;
	}
	printf("%s %zu - large images (%d images)\n", counts[0] ? "not ok" : "ok", number,
	       counts[0] + counts[1]);
	totals[0] += counts[0];
	totals[1] += counts[1];
}

static int run_tests(struct harness *h)
{
	int totals[2] = {0, 0};

	write_matrix(matrix63, sizeof matrix63, 63, 1, 100, "");
	write_matrix(matrix_gain, sizeof matrix_gain, 15, -20, 41, ":scale=1");
	write_matrix(matrix_huge, sizeof matrix_huge, 5, -10000000, 20000001, ":scale=1");
	for (size_t i = 0; i < GROUPS; i++)
		run_group(h, &groups[i], i + 1, totals);
	if (samples_most > 1e6)
		run_large(h, GROUPS + 1, totals);
	printf("1..%d\n%d passed, %d failed\n", GROUPS + (samples_most > 1e6), totals[1],
	       totals[0]);
	return totals[0] ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"bench", no_argument, NULL, 'b'},
	                                        {"seed", required_argument, NULL, 's'},
	                                        {"most", required_argument, NULL, 'm'},
	                                        {"copy", no_argument, NULL, 'c'},
	                                        {"device", required_argument, NULL, 'd'},
	                                        {"kernel-dir", required_argument, NULL, 'k'},
	                                        {0}};
	const char *kernel_dir = NULL;
	struct harness h;
	unsigned device = 0;
	bool bench = false;
	int c, status = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 'b')
			bench = true;
		else if (c == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (c == 'm')
			samples_most = strtod(optarg, NULL);
		else if (c == 'c')
			only_copy = true;
		else if (c == 'd')
			device = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'k')
			kernel_dir = optarg;
		else
			return 2;
	log_init("test_kernels", LOG_LEVEL_WARNING);
	if (!harness_init(&h, device, bench ? bench_arena_size() : ARENA_SIZE, kernel_dir))
		return 1;
	if (bench)
		bench_run(&h);
	else
		status = run_tests(&h);
	harness_fini(&h);
	return status;
}
