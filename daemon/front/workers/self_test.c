/* Test tiles. They are small enough to be made and compared here in a few milliseconds, so no codec
 * worker is involved: a compromised one cannot vouch for a device.
 *
 * A doubted plan comes from a client, whose filters may make a correct result differ much from the
 * reference (an overflow, a difference of nearly equal sums). So each of its filters is tested
 * alone, by the kernel that ran it, on opaque pixels in the middle of the range, with our own
 * coefficients in place of a client's matrix: there the promised accuracy holds. Tests that would
 * block the loop for too long are left out; such filters are tested by the standard tile alone. So
 * a device that is always wrong at some width, place or expensive filter may pass. */
#include "front/workers/self_test.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <glib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memfd.h"
#include "reference/reference.h"
#include "wire/tile.h"

enum { TESTS_MAX = 1 + CHAIN_FILTERS_MAX, AREA = 1 << 20 };

/* Limit of multiply-adds for the expected results of all doubted filters: some milliseconds. */
static const double cost_max = 1e7;

/* In this order no filter much amplifies the rounding error of those before it. */
static const char filters[] =
    "sobel,bilateral=radius=1,gaussian=size=5,convolve=kernel=0 1 0;1 4 1;0 1 0";

static const struct image default_image = {.width = 64, .height = 64, .bands = 3, .type = PIXEL_U8};

struct test {
	struct image image;
	int chain_fd;
	struct tile tile;
	struct reference expected;
	bool waits; /* sent and not back yet */
};

struct self_test {
	struct test test[TESTS_MAX];
	unsigned count;
	bool wrong;
	struct arena memory;
	int in, out;
};

/* Returns a sample of the test image. Neighbours differ, but few gradients exceed the range. */
static double sample(const struct image *image, int x, int y, int band)
{
	double full = pixel_type_rows[image->type].full_scale;
	uint8_t value = (uint8_t)(x * 5 + y * 3 + x * y % 8 * 4 + band * 40);

	if (image->alpha && band == (int)image->bands - 1)
		return full;
	return image->type == PIXEL_F32 ? value / 255.0 : floor(value / 255.0 * full);
}

/* Writes these columns and rows of the image, with its edge repeated outside it. */
static void fill(const struct image *image, struct extent across, struct extent down, uint8_t *to,
                 uint64_t pitch)
{
	const int width = (int)image->width, height = (int)image->height;
	const size_t bands = image->bands;

	for (int y = 0; y < (int)down.count; y++, to += pitch)
		for (size_t i = 0; i < across.count * bands; i++) {
			const int x = across.first + (int)(i / bands), b = (int)(i % bands);

			image_put_sample(to, i, image->type,
			                 sample(image, CLAMP(x, 0, width - 1),
			                        CLAMP(down.first + y, 0, height - 1), b));
		}
}

/* Adds a test of this chain in its own area of the arena; ERR_DOES_NOT_FIT if that is too small. */
static enum error add_test(struct self_test *t, const struct chain *chain,
                           const struct image *image)
{
	struct test *test = &t->test[t->count];
	uint64_t area = (uint64_t)t->count * AREA;
	const struct geometry *g;
	struct extent read[2];
	struct tiling tiling;
	uint8_t *pixels;
	enum error e = tiling_init(&tiling, chain, image, AREA, AREA, AREA, NULL);

	if (e || tiling.count > 1)
		return ERR_DOES_NOT_FIT;
	*test = (struct test){.image = *image};
	tiling_tile(&tiling, 0, &test->tile);
	test->tile.job = SELF_TEST_JOB;
	test->tile.arena = SELF_TEST_ARENA;
	test->tile.index = t->count;
	test->tile.in += area;
	test->tile.out += area;
	pixels = malloc((size_t)image_size(image));
	if (!pixels)
		return ERR_MEMORY;
	fill(image, (struct extent){0, image->width}, (struct extent){0, image->height}, pixels,
	     image_row_size(image));
	e = reference_filter(chain, image, pixels, &test->expected);
	free(pixels);
	if (e)
		return e;
	if (memfd_sealed("self-test", chain, chain_size(chain), &test->chain_fd)) {
		reference_fini(&test->expected);
		return ERR_IO;
	}
	g = &tiling.geometry;
	for (int i = 0; i < 2; i++) {
		const struct extent source =
		    geometry_source(g, i, g->crop[i], i ? test->tile.height : test->tile.width);

		read[i] = (struct extent){source.first - (int32_t)g->halo[i],
		                          source.count + 2 * g->halo[i]};
	}
	fill(image, read[0], read[1],
	     (uint8_t *)t->memory.in + test->tile.in - g->halo[1] * (uint64_t)test->tile.in_pitch -
	         g->halo[0] * image_pixel_size(image),
	     test->tile.in_pitch);
	t->count++;
	return ERR_OK;
}

/* Makes a chain of the i-th filter of a doubted plan, by the kernel that ran it. A matrix of
 * derivatives does not filter alpha, but our own might, so the test image then has none. */
static enum error isolate(const struct plan *plan, const struct kernel_set *kernels, uint32_t i,
                          struct chain *chain, struct image *image)
{
	const struct filter_call *call = &plan->chain->chain->call[i];
	const enum gather gather = call->gathered.width ? filter_gathers(call) : GATHER_NONE;
	struct operation op;
	enum error e;

	/* The edges and the tables are those of a client's image. */
	if (gather == GATHER_EDGES || gather == GATHER_TILES || plan->chain->size > sizeof *chain)
		return ERR_DOES_NOT_FIT;
	memcpy(chain, plan->chain->chain, plan->chain->size);
	chain->call[0] = chain->call[i];
	chain->count = 1;
	chain->regions.count = 0;
	chain->border = BORDER_REPLICATE;
	e = filter_lower(&chain->call[0], chain->coefficient, &op);
	if (e)
		return e;
	/* Returns the variant for the first of these kernels that supports the operation. */
	chain->variant = VARIANT_ANY;
	for (enum kernel k = 0; chain->variant == VARIANT_ANY && k < KERNELS; k++)
		if (kernel_set_has(kernels, k) &&
		    kernel_row(k)->operations & operation_kernels(op.kind))
			chain->variant = k + 1;
	*image = plan->image;
	image->draft = (struct draft){0};
	if (chain->call[0].filter == FILTER_CONVOLVE) {
		const struct numbers *n = &chain->call[0].numbers[CONVOLVE_KERNEL];
		double *to = &chain->coefficient[n->first];

		image->alpha = image->alpha && op.smoothing;
		/* Sets our own coefficients, of rank 1 if the client's are. */
		for (uint32_t y = 0; y < n->height; y++)
			for (uint32_t x = 0; x < n->width; x++)
				*to++ = op.kind == OPERATION_SEPARABLE ? (1 + x % 3) * (1 + y % 2)
				                                       : 1 + (5 * x + 3 * y) % 7;
		chain->call[0].value[CONVOLVE_SCALE] = NAN;
		chain->call[0].value[CONVOLVE_OFFSET] = 0;
	}
	operation_fini(&op);
	return ERR_OK;
}

/* Adds a test of a doubted plan's i-th filter, on the largest such image that is cheap enough. */
static void add_doubted(struct self_test *t, const struct plan *plan,
                        const struct kernel_set *kernels, uint32_t i, struct chain *chain)
{
	static const struct {
		uint32_t width, height;
	} sizes[] = {{256, 16}, {128, 8}, {64, 4}, {64, 1}};
	const double calls = plan->chain->chain->count;
	struct image image;

	if (isolate(plan, kernels, i, chain, &image))
		return;
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		image.width = sizes[s].width;
		image.height = sizes[s].height;
		if (reference_cost(chain, &image, image.width, image.height) * calls < cost_max &&
		    !add_test(t, chain, &image))
			return;
	}
}

struct self_test *self_test_new(const struct plan *plan, const struct kernel_set *kernels)
{
	const uint64_t size = (uint64_t)TESTS_MAX * AREA;
	struct self_test *t = calloc(1, sizeof *t);
	struct chain *chain = calloc(1, sizeof *chain);
	struct problem problem;
	enum error e = t && chain ? ERR_OK : ERR_MEMORY;

	if (t)
		t->in = t->out = -1;
	if (!e)
		e = memfd_fixed("self-test-in", size, &t->in);
	if (!e)
		e = memfd_fixed("self-test-out", size, &t->out);
	if (!e)
		e = arena_map(&t->memory, t->in, size, PROT_READ | PROT_WRITE, t->out, size,
		              PROT_READ);
	if (!e) {
		chain_init(chain);
		e = chain_parse(chain, filters, &problem);
	}
	if (!e)
		e = add_test(t, chain, &default_image);
	for (uint32_t i = 0; !e && plan && i < plan->chain->chain->count; i++)
		add_doubted(t, plan, kernels, i, chain);
	free(chain);
	if (e) {
		log_error("cannot prepare the test tiles");
		self_test_free(&t);
	}
	return t;
}

void self_test_free(struct self_test **self_test)
{
	struct self_test *t = *self_test;

	if (!t)
		return;
	for (unsigned i = 0; i < t->count; i++) {
		reference_fini(&t->test[i].expected);
		close(t->test[i].chain_fd);
	}
	if (t->memory.in)
		arena_unmap(&t->memory);
	file_close(&t->in);
	file_close(&t->out);
	free(t);
	*self_test = NULL;
}

static uint64_t plan_of(const struct test *test)
{
	return UINT64_MAX - test->tile.index;
}

void self_test_send(struct self_test *t, struct worker *worker)
{
	const uint64_t size = (uint64_t)TESTS_MAX * AREA;
	struct message arena = {.type = MSG_ARENA, .arena = {SELF_TEST_ARENA, 0, size, size}};
	int fds[] = {t->in, t->out};

	worker_send(worker, &arena, fds);
	t->wrong = false;
	for (unsigned i = 0; i < t->count; i++) {
		struct test *test = &t->test[i];
		struct message plan = {.type = MSG_PLAN,
		                       .plan = {.plan = plan_of(test), .image = test->image}};
		struct message tile = {.type = MSG_TILE, .tile = {test->tile, plan_of(test)}};

		test->waits = true;
		worker_send(worker, &plan, &test->chain_fd);
		worker_send(worker, &tile, NULL);
	}
}

void self_test_withdraw(const struct self_test *t, struct worker *worker)
{
	struct message arena = {.type = MSG_ARENA_DROP, .arena_drop = {SELF_TEST_ARENA}};

	for (unsigned i = 0; i < t->count; i++) {
		struct message plan = {.type = MSG_PLAN_DROP, .plan_drop = {plan_of(&t->test[i])}};

		worker_send(worker, &plan, NULL);
	}
	worker_send(worker, &arena, NULL);
}

static bool is_right(const struct self_test *t, const struct test *test,
                     const struct message_tile_done *done)
{
	struct difference difference = {0};

	if (done->error == ERR_BAD_PARAMETER || done->error == ERR_NOT_READY)
		return true;
	if (done->error) {
		log_warning("test tile %u failed: %s (OpenCL %d)", test->tile.index,
		            error_row((enum error)done->error)->title, done->cl_error);
		return false;
	}
	difference_add(&difference, &test->expected,
	               (const uint8_t *)t->memory.out + test->tile.out, test->tile.out_pitch);
	if (difference.mismatches)
		log_warning("test tile %u has %" PRIu64
		            " wrong samples; the first at %u,%u band %u: %.9g is not %.9g +- %.3g",
		            test->tile.index, difference.mismatches, difference.x, difference.y,
		            difference.band, difference.got, difference.wanted, difference.slack);
	return !difference.mismatches;
}

enum self_test_result self_test_take(struct self_test *t, const struct message_tile_done *done)
{
	struct test *test = done->index < t->count ? &t->test[done->index] : NULL;

	if (!test || !test->waits)
		return SELF_TEST_WRONG;
	test->waits = false;
	t->wrong |= !is_right(t, test, done);
	for (unsigned i = 0; i < t->count; i++)
		if (t->test[i].waits)
			return SELF_TEST_OPEN;
	return t->wrong ? SELF_TEST_WRONG : SELF_TEST_RIGHT;
}
