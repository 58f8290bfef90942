/* Which kernels are offered for a piece of work, on devices that only these tests have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "device/plan/variant.h"

static const struct device cpu = {
    .type = DEVICE_CPU, .local_memory = 256 << 10, .group_max = 4096, .group_sides = {4096, 4096}};
static const struct device nvidia = {.type = DEVICE_GPU,
                                     .nvidia = true,
                                     .local_memory = 48 << 10,
                                     .group_max = 1024,
                                     .group_sides = {1024, 1024}};

/* Returns the work that a filter is on a wide image without alpha; the operation becomes the
 * caller's. */
static struct work work_of(const char *filter, uint32_t bands, struct operation *op)
{
	static struct chain chain;
	struct problem problem;

	chain_init(&chain);
	assert_int_equal(chain_parse(&chain, filter, &problem), ERR_OK);
	assert_int_equal(filter_lower(&chain.call[0], chain.coefficient, op), ERR_OK);
	return (struct work){.operation = op,
	                     .type = PIXEL_U8,
	                     .image_type = PIXEL_U8,
	                     .bands = bands,
	                     .width = 2048};
}

static bool is_offered(enum kernel kernel, const struct device *device, const char *filter)
{
	struct operation op;
	struct work work = work_of(filter, 3, &op);
	bool applies = variant_applies(kernel, &work, device, false);

	operation_fini(&op);
	return applies;
}

/* A mean is one however it is written, and whatever its scale. */
static void test_mean(void **state)
{
	static const char *const means[] = {"gaussian=size=3", "convolve=kernel=1 2 1;2 4 2;1 2 1",
	                                    "convolve=kernel=-1 -2 -1;-3 -6 -3;-1 -2 -1",
	                                    "convolve=kernel=0 0 0;0 1 2;0 3 6",
	                                    "convolve=kernel=7 7 7;7 7 7;7 7 7:scale=63"};

	(void)state;
	for (size_t i = 0; i < sizeof means / sizeof *means; i++) {
		assert_true(is_offered(KERNEL_SEPARABLE_PACKED, &cpu, means[i]));
		assert_true(is_offered(KERNEL_SEPARABLE_HALF, &nvidia, means[i]));
	}
	assert_false(is_offered(KERNEL_SEPARABLE_PACKED, &cpu,
	                        "convolve=kernel=1 2 1;2 4 2;1 2 1:scale=17"));
	assert_false(is_offered(KERNEL_SEPARABLE_PACKED, &cpu,
	                        "convolve=kernel=-1 3 -1;-3 9 -3;-1 3 -1:scale=5"));
}

/* Bytes of a CPU are looked up; powers in a plan's table, floats not at all. */
static void test_samples(void **state)
{
	(void)state;
	assert_true(is_offered(KERNEL_THRESHOLD_PACKED, &cpu, "threshold=value=0.4"));
	assert_true(is_offered(KERNEL_CURVE_PACKED, &cpu, "invert"));
	assert_true(is_offered(KERNEL_LUT_PACKED, &cpu, "lut=table=0 64 255"));
	assert_false(is_offered(KERNEL_CURVE_PACKED, &nvidia, "invert"));
	assert_false(is_offered(KERNEL_CURVE_PACKED, &cpu, "gamma=gamma=2"));
	assert_true(is_offered(KERNEL_CURVE_ROWS, &cpu, "gamma=gamma=2"));
	assert_true(is_offered(KERNEL_THRESHOLD_ROWS, &cpu, "threshold=value=0.4"));
	assert_false(is_offered(KERNEL_THRESHOLD_ROWS, &nvidia, "threshold=value=0.4"));
}

/* Running sums are of equal weights, and of large windows; what is compared with a blur may be. */
static void test_sums(void **state)
{
	(void)state;
	assert_true(is_offered(KERNEL_SEPARABLE_SUMS, &cpu, "box=size=9"));
	assert_true(is_offered(KERNEL_SEPARABLE_SUMS, &cpu, "box=size=601"));
	assert_false(is_offered(KERNEL_SEPARABLE_SUMS, &cpu, "box=size=3"));
	assert_false(is_offered(KERNEL_SEPARABLE_SUMS, &cpu, "gaussian=size=9"));
	assert_false(is_offered(KERNEL_SEPARABLE_SUMS, &nvidia, "box=size=9"));
	assert_true(is_offered(KERNEL_THRESHOLD_LOCAL_SUMS, &cpu, "threshold=method=mean:size=3"));
	assert_false(
	    is_offered(KERNEL_THRESHOLD_LOCAL_SUMS, &cpu, "threshold=method=gaussian:size=3"));
	assert_true(
	    is_offered(KERNEL_THRESHOLD_LOCAL_WIDE, &cpu, "threshold=method=gaussian:size=63"));
	assert_false(
	    is_offered(KERNEL_THRESHOLD_LOCAL_WIDE, &cpu, "threshold=method=gaussian:size=65"));
	assert_true(is_offered(KERNEL_UNSHARP_WIDE, &cpu, "unsharp"));
	assert_false(is_offered(KERNEL_UNSHARP_WIDE, &nvidia, "unsharp"));
	assert_false(is_offered(KERNEL_UNSHARP_WIDE, &cpu, "threshold=method=mean"));
}

/* Columns share values for squares of two sizes only; colours are mixed for any image. */
static void test_cpu_windows(void **state)
{
	(void)state;
	assert_true(is_offered(KERNEL_MEDIAN_ROWS, &cpu, "median"));
	assert_true(is_offered(KERNEL_MEDIAN_ROWS, &cpu, "median=radius=2"));
	assert_false(is_offered(KERNEL_MEDIAN_ROWS, &cpu, "median=radius=3"));
	assert_false(is_offered(KERNEL_MEDIAN_ROWS, &cpu, "rank=radius=2:percentile=30"));
	assert_true(is_offered(KERNEL_PIXELATE_ROWS, &cpu, "pixelate=size=256"));
	assert_true(is_offered(KERNEL_COLORMATRIX_WIDE, &cpu, "grayscale"));
	assert_false(is_offered(KERNEL_COLORMATRIX_WIDE, &nvidia, "grayscale"));
}

/* 16-bit lanes have room for sums that half floats cannot hold exactly. */
static void test_gradients(void **state)
{
	(void)state;
	assert_true(is_offered(KERNEL_GRADIENT_PACKED, &cpu, "sobel"));
	assert_true(is_offered(KERNEL_GRADIENT_PACKED, &cpu, "scharr"));
	assert_true(is_offered(KERNEL_GRADIENT_HALF, &nvidia, "sobel"));
	assert_false(is_offered(KERNEL_GRADIENT_HALF, &nvidia, "scharr"));
	assert_false(is_offered(KERNEL_GRADIENT_PACKED, &cpu, "scharr=output=x"));
}

static uint32_t count_shapes(enum kernel kernel, const struct device *device, const char *filter,
                             uint32_t bands)
{
	struct operation op;
	struct shape shapes[SHAPES_MAX];
	struct work work = work_of(filter, bands, &op);
	uint32_t count = variant_shapes(kernel, &work, device, shapes);

	operation_fini(&op);
	return count;
}

/* Shapes whose groups need more local memory than there is are not offered: of separable_local's
 * three for bytes the largest has 33,808 bytes for a radius of 15 in grey, and 36,880 in RGBA. */
static void test_local_memory(void **state)
{
	struct device small = nvidia;

	(void)state;
	assert_true(count_shapes(KERNEL_BILATERAL_TABLE, &nvidia, "bilateral", 1) > 0);
	small.local_memory = 49023;
	assert_int_equal(count_shapes(KERNEL_BILATERAL_TABLE, &small, "bilateral", 1), 0);
	small.local_memory = 33808;
	assert_int_equal(count_shapes(KERNEL_SEPARABLE_LOCAL, &small, "gaussian=size=31", 1), 3);
	assert_int_equal(count_shapes(KERNEL_SEPARABLE_LOCAL, &small, "gaussian=size=31", 4), 2);
	small.local_memory = 33807;
	assert_int_equal(count_shapes(KERNEL_SEPARABLE_LOCAL, &small, "gaussian=size=31", 1), 2);
}

/* A device with smaller groups gets kernels that fit, and there is always a general one. */
static void test_small_groups(void **state)
{
	struct device small = nvidia;
	struct operation op;
	struct work work = work_of("gaussian=size=3", 3, &op);
	struct shape shape;

	(void)state;
	small.group_max = 64;
	assert_int_equal(count_shapes(KERNEL_GRADIENT_HALF, &small, "sobel", 1), 2);
	assert_int_equal(count_shapes(KERNEL_MATRIX_RING, &small, "laplacian", 1), 0);
	small.group_max = 1024;
	small.group_sides[0] = 16;
	assert_int_equal(count_shapes(KERNEL_GRADIENT_HALF, &small, "sobel", 1), 0);
	shape = variant_general_shape(&small, variant_general_kernel(&small, &work));
	assert_true(shape.group_x <= 16 && shape.group_x * shape.x >= 32);
	assert_true(variant_applies(KERNEL_CONV_NAIVE, &work, &small, true));
	small.group_max = 64;
	assert_false(variant_applies(KERNEL_CONV_NAIVE, &work, &small, true));
	operation_fini(&op);
}

/* Image objects must be there, of the type, and as large as what a tile may read. */
static void test_images(void **state)
{
	struct device with = nvidia;
	struct operation op, smooth;
	struct work work = work_of("laplacian", 4, &op), other = work_of("bilateral", 4, &smooth);

	(void)state;
	work.read_width = work.read_height = other.read_width = other.read_height = 100;
	assert_false(variant_applies(KERNEL_CONV_IMAGE, &work, &with, true));
	with.image_width = with.image_height = 100;
	with.image_bands[PIXEL_U16] = with.share_bands[PIXEL_U16] = 1u << 4;
	assert_false(variant_applies(KERNEL_CONV_IMAGE, &work, &with, true));
	assert_false(variant_applies(KERNEL_BILATERAL_IMAGE, &other, &with, true));
	with.image_bands[PIXEL_U8] = 1u << 4;
	assert_false(variant_applies(KERNEL_CONV_IMAGE, &work, &with, true));
	assert_true(variant_applies(KERNEL_BILATERAL_IMAGE, &other, &with, true));
	with.share_bands[PIXEL_U8] = 1u << 4;
	assert_true(variant_applies(KERNEL_CONV_IMAGE, &work, &with, true));
	work.read_height++;
	assert_false(variant_applies(KERNEL_CONV_IMAGE, &work, &with, true));
	operation_fini(&op);
	operation_fini(&smooth);
}

/* The tuner has room for all candidates of every kind of work. */
static void test_candidates(void **state)
{
	static const char *const filters[] = {"gaussian=size=3", "laplacian", "sobel", "dog",
	                                      "bilateral",       "pixelate"};
	struct shape shapes[SHAPES_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
		for (uint32_t bands = 1; bands <= BANDS_MAX; bands++) {
			struct operation op;
			struct work work = work_of(filters[i], bands, &op);
			uint32_t count = 0;

			for (enum kernel k = 0; k < KERNELS; k++)
				if (variant_applies(k, &work, &nvidia, false))
					count += variant_shapes(k, &work, &nvidia, shapes);
			assert_in_range(count, 1, CANDIDATES_MAX);
			operation_fini(&op);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_mean),         cmocka_unit_test(test_sums),
	    cmocka_unit_test(test_samples),      cmocka_unit_test(test_gradients),
	    cmocka_unit_test(test_local_memory), cmocka_unit_test(test_small_groups),
	    cmocka_unit_test(test_images),       cmocka_unit_test(test_candidates),
	    cmocka_unit_test(test_cpu_windows)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
