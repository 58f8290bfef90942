/* What the device worker works out without a device. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/bound.h"

/* The value of a half float's bits. */
static double half_value(uint32_t bits)
{
	int exponent = (int)(bits >> 10 & 31);
	double mantissa = bits & 1023;
	double value = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);

	return bits >> 15 ? -value : value;
}

static void test_half(void **state)
{
	(void)state;
	assert_int_equal(half_bits(0), 0);
	assert_int_equal(half_bits(1), 0x3c00);
	assert_int_equal(half_bits(-2), 0xc000);
	assert_int_equal(half_bits(65504), 0x7bff);
	assert_int_equal(half_bits(1e6), 0x7c00);
	assert_int_equal(half_bits(0x1p-14), 0x0400);
	assert_int_equal(half_bits(0x1p-24), 0x0001);
	/* Rounded up to the next power of two. */
	assert_int_equal(half_bits(2 - 0x1p-12), 0x4000);
	for (double v = 1e-4; v < 1; v *= 1.01)
		assert_true(fabs(half_value(half_bits(v)) - v) <= v * 0x1p-11);
}

/* Of these the first is known to be exact enough, the second not. */
static void test_bound(void **state)
{
	double small[6] = {0.239, 0.522, 0.239, 0.239, 0.522, 0.239}, large[42];
	struct operation op = {.kind = OPERATION_SEPARABLE, .radius_x = 1, .radius_y = 1};

	(void)state;
	op.coefficients = small;
	assert_true(bound_of_halves(KERNEL_SEPARABLE_HALF, &op) < 0.5);
	for (int i = 0; i < 42; i++)
		large[i] = 1 / 21.0;
	op.radius_x = op.radius_y = 10;
	op.coefficients = large;
	assert_true(bound_of_halves(KERNEL_SEPARABLE_HALF, &op) > 1);
	assert_true(bound_of_halves(KERNEL_SEPARABLE_MMA, &op) < 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_half),
	                                   cmocka_unit_test(test_bound)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
