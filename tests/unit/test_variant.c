/* Which kernels are offered for a piece of work, on devices that only these tests have. */
#include "device/plan/variant.h"
#include "unit.h"

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

/* Kernels by what they do, where and how large a window is. */
TEST(test_offered)
{
	static const struct {
		enum kernel kernel;
		const struct device *device;
		const char *filter;
		bool is_offered;
	} rows[] = {
	    /* A mean is one however it is written, and whatever its scale. */
	    {KERNEL_SEPARABLE_PACKED, &cpu, "gaussian=size=3", true},
	    {KERNEL_SEPARABLE_PACKED, &cpu, "convolve=kernel=1 2 1;2 4 2;1 2 1", true},
	    {KERNEL_SEPARABLE_PACKED, &cpu, "convolve=kernel=-1 -2 -1;-3 -6 -3;-1 -2 -1", true},
	    {KERNEL_SEPARABLE_HALF, &nvidia, "convolve=kernel=0 0 0;0 1 2;0 3 6", true},
	    {KERNEL_SEPARABLE_HALF, &nvidia, "convolve=kernel=7 7 7;7 7 7;7 7 7:scale=63", true},
	    {KERNEL_SEPARABLE_PACKED, &cpu, "convolve=kernel=1 2 1;2 4 2;1 2 1:scale=17", false},
	    {KERNEL_SEPARABLE_PACKED, &cpu, "convolve=kernel=-1 3 -1;-3 9 -3;-1 3 -1:scale=5",
	     false},
	    /* Bytes of a CPU are looked up; powers in a plan's table, floats not at all. */
	    {KERNEL_THRESHOLD_PACKED, &cpu, "threshold=value=0.4", true},
	    {KERNEL_CURVE_PACKED, &cpu, "invert", true},
	    {KERNEL_LUT_PACKED, &cpu, "lut=table=0 64 255", true},
	    {KERNEL_CURVE_PACKED, &nvidia, "invert", false},
	    {KERNEL_CURVE_PACKED, &cpu, "gamma=gamma=2", false},
	    {KERNEL_CURVE_ROWS, &cpu, "gamma=gamma=2", true},
	    {KERNEL_THRESHOLD_ROWS, &cpu, "threshold=value=0.4", true},
	    {KERNEL_THRESHOLD_ROWS, &nvidia, "threshold=value=0.4", false},
	    /* Running sums are of equal weights, and of large windows; what is compared with a blur
	     * may be. */
	    {KERNEL_SEPARABLE_SUMS, &cpu, "box=size=9", true},
	    {KERNEL_SEPARABLE_SUMS, &cpu, "box=size=601", true},
	    {KERNEL_SEPARABLE_SUMS, &cpu, "box=size=3", false},
	    {KERNEL_SEPARABLE_SUMS, &cpu, "gaussian=size=9", false},
	    {KERNEL_SEPARABLE_SUMS, &nvidia, "box=size=9", false},
	    {KERNEL_THRESHOLD_LOCAL_SUMS, &cpu, "threshold=method=mean:size=3", true},
	    {KERNEL_THRESHOLD_LOCAL_SUMS, &cpu, "threshold=method=gaussian:size=3", false},
	    {KERNEL_THRESHOLD_LOCAL_WIDE, &cpu, "threshold=method=gaussian:size=63", true},
	    {KERNEL_THRESHOLD_LOCAL_WIDE, &cpu, "threshold=method=gaussian:size=65", false},
	    {KERNEL_UNSHARP_WIDE, &cpu, "unsharp", true},
	    {KERNEL_UNSHARP_WIDE, &nvidia, "unsharp", false},
	    {KERNEL_UNSHARP_WIDE, &cpu, "threshold=method=mean", false},
	    /* Columns share values for squares of two sizes; colours are mixed for any image. */
	    {KERNEL_MEDIAN_ROWS, &cpu, "median", true},
	    {KERNEL_MEDIAN_ROWS, &cpu, "median=radius=2", true},
	    {KERNEL_MEDIAN_ROWS, &cpu, "median=radius=3", false},
	    {KERNEL_MEDIAN_ROWS, &cpu, "rank=radius=2:percentile=30", false},
	    {KERNEL_PIXELATE_ROWS, &cpu, "pixelate=size=256", true},
	    {KERNEL_COLORMATRIX_WIDE, &cpu, "grayscale", true},
	    {KERNEL_COLORMATRIX_WIDE, &nvidia, "grayscale", false},
	    /* 16-bit lanes have room for sums that half floats cannot hold exactly. */
	    {KERNEL_GRADIENT_PACKED, &cpu, "sobel", true},
	    {KERNEL_GRADIENT_PACKED, &cpu, "scharr", true},
	    {KERNEL_GRADIENT_HALF, &nvidia, "sobel", true},
	    {KERNEL_GRADIENT_HALF, &nvidia, "scharr", false},
	    {KERNEL_GRADIENT_HALF, &nvidia, "sobel=output=y", true},
	    {KERNEL_GRADIENT_HALF, &nvidia, "sobel=output=direction", false},
	    {KERNEL_GRADIENT_PACKED, &cpu, "scharr=output=x", false},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct operation op;
		struct work work = work_of(rows[i].filter, 3, &op);

		if (variant_applies(rows[i].kernel, &work, rows[i].device, false) !=
		    rows[i].is_offered)
			fail_msg("kernel %d, %s", rows[i].kernel, rows[i].filter);
		operation_fini(&op);
	}
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
TEST(test_local_memory)
{
	struct device small = nvidia;

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
TEST(test_small_groups)
{
	struct device small = nvidia;
	struct operation op;
	struct work work = work_of("gaussian=size=3", 3, &op);
	struct shape shape;

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
TEST(test_images)
{
	struct device with = nvidia;
	struct operation op, smooth;
	struct work work = work_of("laplacian", 4, &op), other = work_of("bilateral", 4, &smooth);

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
TEST(test_candidates)
{
	static const char *const filters[] = {"gaussian=size=3", "laplacian", "sobel", "dog",
	                                      "bilateral",       "pixelate"};
	struct shape shapes[SHAPES_MAX];

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
