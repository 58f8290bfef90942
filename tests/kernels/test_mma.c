/* The kernels for NVIDIA's matrix units, compiled as C by clang and run on this CPU
 * (tests/lib/opencl_on_host, warps_on_host), against the reference: random images of odd sizes, at
 * aligned and odd places, in all shapes of groups, with bands that are kept. The source's rows lie
 * in a buffer with not a word to spare, between random bytes; the target's between bytes that must
 * not change; AddressSanitizer sees every access.
 *
 * test_mma KERNELS DIRECTORY: where the kernels are, and where to put what is compiled. All
 * cases if TEST_ALL is set, or a third. Last it prints "N passed, N failed". */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "base/log.h"
#include "device/cl/source.h"
#include "device/plan/variant.h"
#include "device/plan/weights.h"
#include "filters/chain.h"
#include "opencl_on_host.h"
#include "reference/reference.h"

enum { GUARD = 64, POISON = 0xA5, IMAGES = 6 };

/* Limits of a matrix's result: this many samples, and this part, may be rounded otherwise than the
 * reference's, since sums near a half are. A kernel that never rounds up would differ in half of
 * them. Means of large windows may all be near a half. */
enum { ROUNDED_FEW = 16, ROUNDED_PART = 4 };

/* 15 x 15, of rank 2. */
#define ROWS_2                                                                                     \
	"1 2 3 4 5 6 7 8 9 1 2 3 4 5 6;"                                                           \
	"9 2 4 7 6 -3 5 1 0 -9 7 1 2 0 4;"
#define MATRIX_15 ROWS_2 ROWS_2 ROWS_2 ROWS_2 ROWS_2 ROWS_2 ROWS_2 "1 1 1 1 1 1 1 1 1 1 1 1 1 1 2"

static const struct test_case {
	enum kernel kernel;
	uint32_t bands, keep;
	const char *chain;
} cases[] = {
    {KERNEL_SEPARABLE_MMA, 1, 0, "gaussian=size=3"},
    {KERNEL_SEPARABLE_MMA, 3, 2, "gaussian=sigma=1.1:size=5"},
    {KERNEL_SEPARABLE_MMA, 4, 8, "convolve=kernel=1 2 3 3 3 2 1;2 4 6 6 6 4 2;1 2 3 3 3 2 1"},
    {KERNEL_SEPARABLE_MMA, 2, 0, "gaussian=sigma=5"},
    {KERNEL_SEPARABLE_MMA, 1, 0, "box=size=129"},
    {KERNEL_MATRIX_FIXED, 1, 0, "convolve=kernel=0 -1 0;-1 5 -1;0 -1 0"},
    {KERNEL_MATRIX_FIXED, 1, 0, "convolve=kernel=1 2 3 4 7"},
    {KERNEL_MATRIX_FIXED, 1, 0, "convolve=kernel=1;2;-3;4;5;6;-7:offset=20.5"},
    {KERNEL_MATRIX_FIXED, 1, 0, "convolve=kernel=9000 -9001 1;-9000 9000 2;1 3 -2:scale=1"},
    {KERNEL_MATRIX_FIXED, 1, 0,
     "convolve=kernel=1 2 3 4 5 6 7 8 9 8 7;9 2 4 7 6 0 0 0 0 -9 7;1 1 1 1 1 1 1 1 1 1 2"},
    {KERNEL_MATRIX_FIXED, 1, 0, "convolve=kernel=" MATRIX_15},
    {KERNEL_MATRIX_FIXED, 1, 0,
     "convolve=kernel=1 2 3 4 5;2 9 4 7 6;3 1 8 0 7;4 4 2 7 1;5 6 7 8 0"},
};

enum { CASES = sizeof cases / sizeof *cases };

static uint32_t random_below(uint32_t n)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((state >> 33) % n);
}

typedef void kernel_function(const void *src, uint64_t src_offset, uint32_t src_pitch, void *dst,
                             uint64_t dst_offset, uint32_t dst_pitch, uint32_t samples,
                             uint32_t rows, uint32_t bands, uint32_t blocks, const void *weights,
                             uint32_t rx, uint32_t ry, float offset, uint32_t keep);

/* A case's buffers for all its images. */
struct bench {
	const struct test_case *of;
	struct chain chain;
	struct operation operation;
	struct shape shape;
	kernel_function *function;
	cl_mem weights;
};

/* An image on its way: packed, and as the kernel sees it. */
struct trial {
	const struct bench *bench;
	uint32_t width, height, samples; /* the result's */
	struct image image;
	uint8_t *packed, *src, *dst;
	size_t src_offset, src_pitch, dst_offset, dst_pitch, dst_size;
};

static void fail(const char *what)
{
	fprintf(stderr, "test_mma: %s\n", what);
	exit(1);
}

static void *allocate(size_t size)
{
	uint8_t *p = g_malloc(size);

	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)random_below(256);
	return p;
}

/* Compiling ------------------------------------------------------------------------------------ */

/* Returns the kernel's function, compiled for a case and a shape as plan/programs.c would have
 * it. */
static kernel_function *compile(const struct bench *b, const char *kernels, const char *directory)
{
	static int number;
	const char *name = kernel_name(b->of->kernel);
	char *text = source_load(kernels, variant_rows[b->of->kernel].file);
	char object[4096], command[8192];
	kernel_function *function;
	void *library;
	FILE *pipe;

	snprintf(object, sizeof object, "%s/%s-%d.so", directory, name, number++);
	snprintf(command, sizeof command,
	         "clang -x cl -cl-std=CL1.2 -Xclang -finclude-default-header "
	         "-Xclang -fdeclare-opencl-builtins -DWARPS_ON_HOST -DPIXEL=uchar "
	         "-DPIXEL_MAX=255.0f -DFOR_NVIDIA -DKERNEL_%s -DBANDS=%u -DRADIUS_X=%u "
	         "-DRADIUS_Y=%u -DKEEP=%uu -DBLOCK_X=%u -DBLOCK_Y=%u -DGROUP_X=%u -DGROUP_Y=%u "
	         "-w -g1 -O1 -fsanitize=address,alignment,bounds,shift,signed-integer-overflow "
	         "-fno-sanitize-recover=all -fPIC -shared "
	         "-o '%s' -",
	         name, b->of->bands, b->operation.radius_x, b->operation.radius_y, b->of->keep,
	         b->shape.x, b->shape.y, b->shape.group_x, b->shape.group_y, object);
	pipe = popen(command, "w");
	if (!text || !pipe || fputs(text, pipe) < 0 || pclose(pipe))
		fail("a kernel does not compile");
	free(text);
	library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail(dlerror());
	*(void **)&function = dlsym(library, name);
	if (!function)
		fail(dlerror());
	return function;
}

/* Images --------------------------------------------------------------------------------------- */

/* Rows: none that is too short for the kernel, some that fill warps and groups, nearly or just. */
static void choose_size(struct trial *t)
{
	const uint32_t bands = t->bench->of->bands;
	const uint32_t least = variant_rows[t->bench->of->kernel].samples_min / bands + 1;
	const uint32_t group = t->bench->shape.x * t->bench->shape.group_x / bands;
	const uint32_t widths[] = {least,
	                           least + random_below(80),
	                           128 / bands,
	                           group - 1 + random_below(3),
	                           group + random_below(group),
	                           2041 / bands};
	const uint32_t heights[] = {1, 2, 13, 16 + random_below(3), 31 + random_below(3), 77};

	t->width = widths[random_below(sizeof widths / sizeof *widths)];
	t->width = t->width < least ? least : t->width;
	t->height = heights[random_below(sizeof heights / sizeof *heights)];
	t->samples = t->width * bands;
}

/* Random samples, or flat areas at both ends of the range. */
static void choose_samples(struct trial *t)
{
	const bool flat = random_below(4) == 0;

	t->packed = allocate((size_t)image_size(&t->image));
	for (size_t i = 0; flat && i < image_size(&t->image); i++)
		t->packed[i] = i / 37 % 2 ? 255 : 0;
}

/* Puts the image and room for the result where the kernel finds them: both aligned, for its widest
 * loads and stores, or anywhere. */
static void place(struct trial *t)
{
	const bool aligned = random_below(2);
	const size_t row = image_row_size(&t->image);
	const size_t reach = t->bench->operation.radius_x * t->bench->of->bands;
	const size_t first = aligned ? (16 - reach % 16) % 16 : random_below(16);

	t->src_pitch = aligned ? (row + 15) / 16 * 16 : row + random_below(9);
	t->src = allocate((first + (t->image.height - 1) * t->src_pitch + row + 3) / 4 * 4);
	for (size_t y = 0; y < t->image.height; y++)
		memcpy(t->src + first + y * t->src_pitch, t->packed + y * row, row);
	t->src_offset = first + t->bench->operation.radius_y * t->src_pitch + reach;
	t->dst_offset = GUARD + (aligned ? 0 : random_below(16));
	t->dst_pitch = aligned ? (t->samples + 15) / 16 * 16 : t->samples + random_below(9);
	t->dst_size = t->dst_offset + t->height * t->dst_pitch + GUARD;
	t->dst = allocate(t->dst_size);
	memset(t->dst, POISON, t->dst_size);
}

static void run_item(const void *data)
{
	const struct trial *t = data;
	const struct bench *b = t->bench;

	b->function(t->src, t->src_offset, (uint32_t)t->src_pitch, t->dst, t->dst_offset,
	            (uint32_t)t->dst_pitch, t->samples, t->height, b->of->bands,
	            (t->samples + b->shape.x - 1) / b->shape.x, host_bytes(b->weights),
	            b->operation.radius_x, b->operation.radius_y, (float)b->operation.offset,
	            b->of->keep);
}

static void run(const struct trial *t)
{
	const struct shape *s = &t->bench->shape;
	const size_t across = (size_t)s->x * s->group_x, down = (size_t)s->y * s->group_y;
	const size_t groups[3] = {(t->samples + across - 1) / across, (t->height + down - 1) / down,
	                          1};
	const size_t local[3] = {s->group_x, s->group_y, 1};

	host_run(run_item, t, groups, local);
}

/* The reference's result; where a band is kept, the source's. */
static void make_wanted(const struct trial *t, struct reference *wanted)
{
	const struct test_case *of = t->bench->of;
	const uint8_t *source = t->src + t->src_offset;

	if (reference_filter(&t->bench->chain, &t->image, t->packed, wanted) ||
	    wanted->window.width != t->width || wanted->window.height != t->height)
		fail("no reference");
	for (size_t i = 0; i < (size_t)t->samples * t->height; i++)
		if (of->keep >> i % of->bands & 1) {
			((uint8_t *)wanted->pixels)[i] =
			    source[i / t->samples * t->src_pitch + i % t->samples];
			wanted->slack[i] = 0;
		}
}

static bool guards_hold(const struct trial *t)
{
	for (size_t i = 0; i < t->dst_size; i++) {
		const size_t at = i - t->dst_offset;

		if ((i < t->dst_offset || at / t->dst_pitch >= t->height ||
		     at % t->dst_pitch >= t->samples) &&
		    t->dst[i] != POISON)
			return false;
	}
	return true;
}

/* Returns the number of samples that differ from the reference's rounding. */
static size_t count_rounded(const struct trial *t, const struct reference *wanted)
{
	size_t count = 0;

	for (size_t i = 0; i < (size_t)t->samples * t->height; i++)
		count += t->dst[t->dst_offset + i / t->samples * t->dst_pitch + i % t->samples] !=
		         ((const uint8_t *)wanted->pixels)[i];
	return count;
}

static bool try_image(const struct bench *b)
{
	struct trial t = {.bench = b};
	struct difference d = {0};
	struct reference wanted;
	size_t rounded;
	bool ok;

	choose_size(&t);
	t.image = (struct image){.width = t.width + 2 * b->operation.radius_x,
	                         .height = t.height + 2 * b->operation.radius_y,
	                         .bands = b->of->bands};
	choose_samples(&t);
	place(&t);
	run(&t);
	make_wanted(&t, &wanted);
	difference_add(&d, &wanted, t.dst + t.dst_offset, t.dst_pitch);
	rounded = count_rounded(&t, &wanted);
	ok = guards_hold(&t) && !d.mismatches &&
	     (b->operation.kind != OPERATION_MATRIX ||
	      rounded <= ROUNDED_FEW + d.samples / ROUNDED_PART);
	if (!ok)
		printf("# FAILED %s by %s (%u, %u, %u, %u): %ux%ux%u: %s; %zu rounded "
		       "otherwise, %llu mismatches, at %u,%u band %u %g is not %g\n",
		       b->of->chain, kernel_name(b->of->kernel), b->shape.x, b->shape.y,
		       b->shape.group_x, b->shape.group_y, t.width, t.height, b->of->bands,
		       guards_hold(&t) ? "guards hold" : "bytes outside the result were written",
		       rounded, (unsigned long long)d.mismatches, d.x, d.y, d.band, d.got,
		       d.wanted);
	reference_fini(&wanted);
	free(t.packed);
	free(t.src);
	free(t.dst);
	return ok;
}

/* Cases ---------------------------------------------------------------------------------------- */

static void prepare(struct bench *b, const struct test_case *of)
{
	static const struct device device = {.type = DEVICE_GPU,
	                                     .nvidia = true,
	                                     .local_memory = 48 << 10,
	                                     .group_max = 1024,
	                                     .group_sides = {1024, 1024}};
	struct work work = {
	    .operation = &b->operation, .bands = of->bands, .keep = of->keep, .width = 1000};
	struct shape shapes[SHAPES_MAX];
	struct problem problem;

	*b = (struct bench){.of = of};
	chain_init(&b->chain);
	if (chain_parse(&b->chain, of->chain, &problem) || chain_check(&b->chain, &problem) ||
	    filter_lower(&b->chain.call[0], b->chain.coefficient, &b->operation))
		fail(of->chain);
	b->chain.border = BORDER_CROP;
	if (!variant_applies(of->kernel, &work, &device, true))
		fail("a kernel does not apply to its case");
	b->shape = shapes[random_below(variant_shapes(of->kernel, &work, &device, shapes))];
	if (weights_new(&device, &b->operation, variant_rows[of->kernel].weights, false, b->shape.y,
	                &b->weights))
		fail("no weights");
}

int main(int argc, char **argv)
{
	const size_t every = getenv("TEST_ALL") ? 1 : 3;
	unsigned counts[2] = {0, 0};

	if (argc != 3)
		fail("usage: test_mma KERNELS DIRECTORY");
	log_init("test_mma", LOG_LEVEL_WARNING, LOG_FORMAT_AUTO);
	for (size_t i = 0; i < CASES; i += every) {
		static struct bench b;

		prepare(&b, &cases[i]);
		b.function = compile(&b, argv[1], argv[2]);
		for (int k = 0; k < IMAGES; k++)
			counts[try_image(&b)]++;
		clReleaseMemObject(b.weights);
		operation_fini(&b.operation);
	}
	printf("%u passed, %u failed\n", counts[1], counts[0]);
	return counts[0] != 0;
}
