/* Which kernels are offered for a piece of work, on devices that only these tests have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/plan/variant.h"

static const struct device cpu = {.type = DEVICE_CPU, .local_memory = 256 << 10};
static const struct device nvidia = {.type = DEVICE_GPU, .nvidia = true, .local_memory = 48 << 10};

/* The work that a filter is on a wide image without alpha; the operation becomes the caller's. */
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

/* The tuner has room for all candidates of every kind of work. */
static void test_candidates(void **state)
{
	static const char *const filters[] = {"gaussian=size=3", "laplacian", "sobel", "dog",
	                                      "bilateral"};
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_mean),
	                                   cmocka_unit_test(test_gradients),
	                                   cmocka_unit_test(test_candidates)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
