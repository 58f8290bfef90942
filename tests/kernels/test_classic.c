/* Every published kernel (kernels/classic/) against its definition: all types, bands and radii that
 * it can do, sizes from 1x1, ROIs anywhere, poison around all of them.
 *
 * test_classic [--kernel-dir DIR] [--platform N] [--device N] [--seed N] [--trials N] [--most N]
 *              [--every N] [--only VARIANT] [--no-images]
 * --trials is how many of each kind of trial are made, --most bounds the taps of one, --every takes
 * but each Nth combination of type, bands and radii: for runs under a checker that is slow.
 * --no-images leaves out the kernels that read images: Oclgrind 21.10 --uninitialized takes the
 * shadow of a pointer to an image for that of the image itself, so what it says of them is chance.
 * Prints a line a variant (TAP), a line a failure, and last "N passed, N failed". */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "classic_host.h"
#include "classic_trial.h"

enum { U8 = 1 << PIXEL_U8, ALL_TYPES = (1 << PIXEL_TYPES) - 1 };
enum { ONE = 1 << 1, FOUR = 1 << 4, ALL_BANDS = 0x1E };
enum { RADII = 6 };

struct radii {
	int x, y;
};

/* Properties that a kernel has instead of buffers. */
enum objects {
	BUFFERS,
	IMAGE, /* the source is an image, of integers as such */
	IMAGES /* both are, of shares of full scale */
};

struct variant {
	const char *name, *file;
	enum operation operation;
	enum objects objects;
	bool special; /* compiled for bands and radii */
	int types, bands;
	int block_x, block_y; /* samples and rows a work-item; across, 0 is a pixel */
	size_t group[2];
	int count;
	struct radii radii[RADII];
};

/* Groups are the studies' where they fix them. */
/* clang-format off */
static const struct variant variants[] = {
    {"conv_naive", "convolution", MATRIX, BUFFERS, false, ALL_TYPES, ALL_BANDS, 1, 1, {16, 4},
     6, {{0, 0}, {1, 1}, {2, 2}, {3, 0}, {0, 4}, {7, 5}}},
    {"conv_image", "convolution", MATRIX, IMAGES, false, ALL_TYPES, FOUR, 0, 1, {8, 4},
     1, {{1, 1}}},
    {"conv_local_single", "convolution", MATRIX, IMAGES, false, ALL_TYPES, FOUR, 0, 1, {8, 4},
     1, {{1, 1}}},
    {"conv_local_coop", "convolution", MATRIX, IMAGES, false, ALL_TYPES, FOUR, 0, 1, {8, 4},
     1, {{1, 1}}},
    {"sep_two_pass", "tiled", SEPARABLE, BUFFERS, false, ALL_TYPES, ALL_BANDS, 1, 1, {16, 16},
     6, {{0, 0}, {1, 1}, {2, 2}, {5, 3}, {0, 9}, {40, 40}}},
    {"sep_one_pass", "tiled", SEPARABLE, BUFFERS, true, ALL_TYPES, ALL_BANDS, 1, 1, {16, 16},
     6, {{1, 1}, {2, 2}, {0, 3}, {3, 0}, {8, 8}, {5, 7}}},
    {"sep_tiled", "tiled", SEPARABLE, BUFFERS, true, ALL_TYPES, ALL_BANDS, 4, 4, {8, 8},
     2, {{1, 1}, {2, 2}}},
    {"bilateral_naive", "bilateral", BILATERAL, BUFFERS, false, ALL_TYPES, ALL_BANDS, 0, 1, {16, 4},
     4, {{0, 0}, {1, 1}, {2, 2}, {5, 5}}},
    {"bilateral_image", "bilateral", BILATERAL, IMAGE, false, ALL_TYPES, ONE | FOUR, 0, 1, {16, 4},
     4, {{0, 0}, {1, 1}, {2, 2}, {5, 5}}},
    {"bilateral_unrolled", "bilateral", BILATERAL, BUFFERS, true, ALL_TYPES, ALL_BANDS, 0, 1, {16, 4},
     3, {{1, 1}, {2, 2}, {4, 4}}},
    {"sobel_uchar", "sobel", GRADIENT, BUFFERS, false, U8, ONE, 1, 1, {16, 4},
     1, {{1, 1}}},
    {"sobel_uchar4", "sobel", GRADIENT, BUFFERS, false, U8, ONE, 4, 1, {16, 4},
     1, {{1, 1}}},
    {"sobel_float16_tile", "sobel", GRADIENT, BUFFERS, false, U8, ONE, 16, 16, {2, 2},
     1, {{1, 1}}},
};
/* clang-format on */

enum { VARIANTS = sizeof variants / sizeof *variants };

static double taps_most = 5e5;
static uint32_t trials_most = 2;
static int every = 1;

/* Groups of sep_tiled by class, for the kernel in hand. */
static unsigned tiled_classes[2][2]; /* free on read, free on write */

/* The target buffer, or an intermediate one, or the source. */
struct side {
	cl_mem memory;
	cl_ulong offset;
	cl_uint pitch;
};

static struct side side_of(const struct matrix *m, int x, int y)
{
	return (struct side){host_buffer(m->bytes, m->size), matrix_offset(m, x, y),
	                     (cl_uint)m->pitch};
}

static void set_side(cl_kernel kernel, cl_uint *next, const struct side *side)
{
	host_argument(kernel, next, sizeof side->memory, &side->memory);
	host_argument(kernel, next, sizeof side->offset, &side->offset);
	host_argument(kernel, next, sizeof side->pitch, &side->pitch);
}

static cl_mem image_like(const struct variant *v, const struct trial *t, const void *pixels,
                         int width, int height)
{
	static const cl_channel_type types[][PIXEL_TYPES] = {
	    [IMAGE] = {CL_UNSIGNED_INT8, CL_UNSIGNED_INT16, CL_FLOAT},
	    [IMAGES] = {CL_UNORM_INT8, CL_UNORM_INT16, CL_FLOAT}};

	return host_image(pixels, (size_t)width, (size_t)height, t->bands == 4,
	                  types[v->objects][t->type]);
}

/* Returns the packed pixels of a rectangle; to be freed. */
static char *pack(const struct matrix *m, const struct rect *r)
{
	size_t row = (size_t)r->width * m->pixel;
	char *pixels = malloc(row * (size_t)r->height);

	if (!pixels)
		abort();
	for (int y = 0; y < r->height; y++)
		memcpy(pixels + row * (size_t)y, m->bytes + matrix_offset(m, r->x, r->y + y), row);
	return pixels;
}

/* Returns an image of the ROI. */
static cl_mem source_image(const struct variant *v, const struct trial *t)
{
	char *pixels = pack(&t->source, &t->roi);
	cl_mem image = image_like(v, t, pixels, t->roi.width, t->roi.height);

	free(pixels);
	return image;
}

/* Returns an image of the whole target matrix. */
static cl_mem target_image(const struct variant *v, const struct trial *t)
{
	struct rect all = {0, 0, t->target.width, t->target.height};
	char *pixels = pack(&t->target, &all);
	cl_mem image = image_like(v, t, pixels, all.width, all.height);

	free(pixels);
	return image;
}

/* Takes the target matrix from the image. */
static void read_target_image(cl_mem image, const struct trial *t)
{
	const struct matrix *m = &t->target;
	size_t row = (size_t)m->width * m->pixel;
	char *pixels = malloc(row * (size_t)m->height);

	if (!pixels)
		abort();
	host_read_image(image, pixels, (size_t)m->width, (size_t)m->height);
	for (int y = 0; y < m->height; y++)
		memcpy(m->bytes + matrix_offset(m, 0, y), pixels + row * (size_t)y, row);
	free(pixels);
}

static void set_image(cl_kernel kernel, cl_uint *next, const cl_mem *image, int x, int y)
{
	cl_int2 place = {{x, y}};

	host_argument(kernel, next, sizeof *image, image);
	host_argument(kernel, next, sizeof place, &place);
}

static void set_uint(cl_kernel kernel, cl_uint *next, int value)
{
	cl_uint argument = (cl_uint)value;

	host_argument(kernel, next, sizeof argument, &argument);
}

static void set_float(cl_kernel kernel, cl_uint *next, float value)
{
	host_argument(kernel, next, sizeof value, &value);
}

/* Sets the operation's arguments; values that a kernel must ignore are absurd. */
static void set_operation(cl_kernel kernel, cl_uint *next, const struct trial *t,
                          const cl_mem *weights)
{
	switch (t->operation) {
	case SEPARABLE:
	case MATRIX:
		host_argument(kernel, next, sizeof *weights, weights);
		set_uint(kernel, next, t->rx);
		set_uint(kernel, next, t->ry);
		set_float(kernel, next, t->offset);
		break;
	case GRADIENT:
		set_float(kernel, next, 1);
		set_float(kernel, next, 2);
		set_float(kernel, next, 1);
		set_uint(kernel, next, 0);
		set_float(kernel, next, 1);
		set_float(kernel, next, 0);
		break;
	case BILATERAL:
		set_uint(kernel, next, t->rx);
		set_float(kernel, next, t->space);
		set_float(kernel, next, t->range);
		set_uint(kernel, next, 0);
	}
	set_uint(kernel, next, 0); /* keep */
}

/* Sets the arguments after source and target: size, the operation's, reach. */
static void set_rest(cl_kernel kernel, cl_uint *next, const struct trial *t, const cl_mem *weights)
{
	cl_int4 reach = {{t->roi.x - t->from.x, t->roi.y - t->from.y,
	                  t->roi.x + t->roi.width - 1 - t->from.x,
	                  t->roi.y + t->roi.height - 1 - t->from.y}};

	set_uint(kernel, next, t->from.width * t->bands);
	set_uint(kernel, next, t->from.height);
	set_uint(kernel, next, t->bands);
	set_uint(kernel, next, 1); /* blocks */
	set_operation(kernel, next, t, weights);
	host_argument(kernel, next, sizeof reach, &reach);
}

static void run(const struct variant *v, cl_kernel kernel, const struct trial *t, int items_x,
                int items_y)
{
	size_t block_x = (size_t)(v->block_x ? v->block_x : t->bands);
	size_t x = ((size_t)items_x + block_x - 1) / block_x;
	size_t y = (size_t)(items_y + v->block_y - 1) / (size_t)v->block_y;
	size_t global[2] = {(x + v->group[0] - 1) / v->group[0] * v->group[0],
	                    (y + v->group[1] - 1) / v->group[1] * v->group[1]};

	host_run(kernel, global, v->group);
}

/* Runs both passes, through a buffer with guards of its own. */
static bool run_two_passes(const struct variant *v, cl_kernel kernel, const struct trial *t,
                           const struct side *source, const struct side *target,
                           const cl_mem *weights)
{
	int samples = t->from.width * t->bands, rows = t->from.height, filtered = rows + 2 * t->ry;
	struct matrix between =
	    matrix_new(filtered, samples, sizeof(float), sizeof(float), POISON_SOURCE);
	struct side middle = side_of(&between, 0, 0);
	bool intact;

	for (int pass = 0; pass < 2; pass++) {
		cl_uint next = 0;

		set_side(kernel, &next, pass ? &middle : source);
		set_side(kernel, &next, pass ? target : &middle);
		set_rest(kernel, &next, t, weights);
		set_uint(kernel, &next, pass);
		run(v, kernel, t, pass ? rows : samples, pass ? samples : filtered);
	}
	host_read(middle.memory, between.bytes, between.size);
	intact = matrix_intact(&between, 0, 0, filtered, samples, POISON_SOURCE);
	clReleaseMemObject(middle.memory);
	free(between.bytes);
	return intact;
}

/* One launch, from and to buffers or images. */
static void run_once(const struct variant *v, cl_kernel kernel, const struct trial *t,
                     const struct side *source, const struct side *target, const cl_mem *weights)
{
	cl_mem images[2] = {v->objects == BUFFERS ? NULL : source_image(v, t),
	                    v->objects == IMAGES ? target_image(v, t) : NULL};
	cl_uint next = 0;

	if (images[0])
		set_image(kernel, &next, &images[0], t->from.x - t->roi.x, t->from.y - t->roi.y);
	else
		set_side(kernel, &next, source);
	if (images[1])
		set_image(kernel, &next, &images[1], t->to.x, t->to.y);
	else
		set_side(kernel, &next, target);
	set_rest(kernel, &next, t, weights);
	run(v, kernel, t, t->from.width * t->bands, t->from.height);
	if (images[1])
		read_target_image(images[1], t);
	else
		host_read(target->memory, t->target.bytes, t->target.size);
	for (int i = 0; i < 2; i++)
		if (images[i])
			clReleaseMemObject(images[i]);
}

/* Fills the target matrix. False if something else was written. */
static bool run_trial(const struct variant *v, cl_kernel kernel, struct trial *t)
{
	cl_mem weights = host_buffer(t->weights, sizeof t->weights);
	struct side source = side_of(&t->source, t->from.x, t->from.y);
	struct side target = side_of(&t->target, t->to.x, t->to.y);
	bool ok = true;

	if (!strcmp(v->name, "sep_two_pass")) {
		ok = run_two_passes(v, kernel, t, &source, &target, &weights);
		host_read(target.memory, t->target.bytes, t->target.size);
	} else {
		run_once(v, kernel, t, &source, &target, &weights);
	}
	clReleaseMemObject(source.memory);
	clReleaseMemObject(target.memory);
	clReleaseMemObject(weights);
	if (!ok)
		trial_report(t, "bytes outside the intermediate were written");
	return ok;
}

/* Counts groups by VARIANTS.md's definition of classes, not by the kernel's. */
static void count_classes(const struct trial *t)
{
	const struct rect *roi = &t->roi, *from = &t->from;

	for (int y = 0; y < from->height; y += 32)
		for (int x = 0; x < from->width * t->bands; x += 32) {
			int left = from->x * t->bands + x - t->rx * t->bands;
			int right = from->x * t->bands + x + 32 + t->rx * t->bands;
			int top = from->y + y - t->ry, bottom = from->y + y + 32 + t->ry;
			bool read = left >= roi->x * t->bands && top >= roi->y &&
			            right <= (roi->x + roi->width) * t->bands &&
			            bottom <= roi->y + roi->height;
			bool write = x + 32 <= from->width * t->bands && y + 32 <= from->height;

			tiled_classes[read][write]++;
		}
}

static bool try(const struct variant *v, cl_kernel kernel, struct trial *t, int width, int height)
{
	bool ok;

	trial_init(t, width, height);
	ok = run_trial(v, kernel, t) && trial_check(t);
	if (!strcmp(v->name, "sep_tiled"))
		count_classes(t);
	trial_fini(t);
	return ok;
}

static void choose_size(const struct trial *t, int *width, int *height)
{
	static const int sides[] = {1,  2,  3,  4,  5,  7,  8,  13, 15,  16, 17,
	                            31, 32, 33, 48, 63, 64, 65, 97, 128, 301};
	const uint32_t count = sizeof sides / sizeof *sides;
	double taps = (2 * t->rx + 1) * (2 * t->ry + 1) * t->bands;

	do {
		*width = sides[random_below(count)];
		*height = sides[random_below(count)];
	} while ((double)*width * *height * taps > taps_most && (*width > 1 || *height > 1));
}

/* Trials of one kernel: random sizes, and those at which sep_tiled's groups change class. */
static void try_kernel(const struct variant *v, cl_kernel kernel, struct trial *t, int counts[2])
{
	static const int special[][2] = {{1, 1},   {31, 31}, {20, 7},  {32, 32},
	                                 {64, 64}, {96, 32}, {33, 65}, {95, 33}};
	const uint32_t specials =
	    strcmp(v->name, "sep_tiled") ? 1 : sizeof special / sizeof *special;
	int width, height;

	memset(tiled_classes, 0, sizeof tiled_classes);
	for (t->layout = 0; t->layout < LAYOUTS; t->layout++) {
		for (uint32_t i = 0; i < specials; i++)
			counts[try(v, kernel, t, special[i][0], special[i][1])]++;
		for (uint32_t i = 0; i < trials_most * (v->count == 1 ? 10 : 1); i++) {
			choose_size(t, &width, &height);
			counts[try(v, kernel, t, width, height)]++;
		}
	}
	for (int i = 0; specials > 1 && i < 4; i++)
		if (!tiled_classes[i / 2][i % 2]) {
			printf("# no group was %s on read and %s on write\n",
			       i / 2 ? "free" : "checked", i % 2 ? "free" : "checked");
			counts[0]++;
		}
}

static cl_kernel kernel_for(const struct variant *v, const struct trial *t)
{
	static const char *const types[PIXEL_TYPES] = {
	    [PIXEL_U8] = "-DPIXEL=uchar -DPIXEL_MAX=255.0f",
	    [PIXEL_U16] = "-DPIXEL=ushort -DPIXEL_MAX=65535.0f",
	    [PIXEL_F32] = "-DPIXEL=float"};
	char options[160];

	if (v->special)
		snprintf(options, sizeof options, "%s -DBANDS=%d -DRADIUS_X=%d -DRADIUS_Y=%d",
		         types[t->type], t->bands, t->rx, t->ry);
	else
		snprintf(options, sizeof options, "%s", types[t->type]);
	return host_kernel(v->file, v->name, options);
}

/* A third of the kernels that are compiled for radii: compiling takes long. With two radii it is a
 * half, so that every type meets every number of bands. */
static bool left_out(const struct variant *v, const struct trial *t, int radii)
{
	return v->special && ((int)t->type + t->bands + radii) % (v->count > 2 ? 3 : 2);
}

static void try_variant(const struct variant *v, int number, int totals[2])
{
	static struct trial t;
	int counts[2] = {0, 0}, tried = 0;

	for (int i = 0; i < (int)PIXEL_TYPES * 4 * v->count; i++) {
		int radii = i % v->count;

		t.operation = v->operation;
		t.type = (enum pixel_type)(i / v->count % (int)PIXEL_TYPES);
		t.bands = 1 + i / v->count / (int)PIXEL_TYPES;
		t.rx = v->radii[radii].x;
		t.ry = v->radii[radii].y;
		if (v->types >> t.type & v->bands >> t.bands & 1 && !left_out(v, &t, radii) &&
		    tried++ % every == 0)
			try_kernel(v, kernel_for(v, &t), &t, counts);
	}
	printf("%s %d - %s (%d images)\n", counts[0] ? "not ok" : "ok", number, v->name,
	       counts[0] + counts[1]);
	fflush(stdout);
	totals[0] += counts[0];
	totals[1] += counts[1];
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"kernel-dir", required_argument, NULL, 'k'},
	                                        {"platform", required_argument, NULL, 'p'},
	                                        {"device", required_argument, NULL, 'd'},
	                                        {"seed", required_argument, NULL, 's'},
	                                        {"trials", required_argument, NULL, 't'},
	                                        {"most", required_argument, NULL, 'm'},
	                                        {"every", required_argument, NULL, 'e'},
	                                        {"no-images", no_argument, NULL, 'n'},
	                                        {"only", required_argument, NULL, 'o'},
	                                        {0}};
	const char *kernel_dir = NULL, *only = NULL;
	bool images = true;
	unsigned platform = 0, device = 0;
	int c, totals[2] = {0, 0}, number = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 'k')
			kernel_dir = optarg;
		else if (c == 'p')
			platform = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'd')
			device = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 's')
			trial_seed = strtoull(optarg, NULL, 10);
		else if (c == 't')
			trials_most = (uint32_t)strtoul(optarg, NULL, 10);
		else if (c == 'm')
			taps_most = strtod(optarg, NULL);
		else if (c == 'e' && atoi(optarg) > 0)
			every = atoi(optarg);
		else if (c == 'n')
			images = false;
		else if (c == 'o')
			only = optarg;
		else
			return 2;
	host_open(platform, device, kernel_dir);
	for (int i = 0; i < VARIANTS; i++)
		if (only ? !strcmp(only, variants[i].name)
		         : images || variants[i].objects == BUFFERS)
			try_variant(&variants[i], ++number, totals);
	host_close();
	printf("1..%d\n%d passed, %d failed\n", number, totals[1], totals[0]);
	return totals[0] ? 1 : 0;
}
