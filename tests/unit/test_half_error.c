/* The most that a result may be off by half floats, fixed point and tables. */
#include "device/plan/half_error.h"
#include "unit.h"

/* Here the first is known to be exact enough, the second not. */
TEST(test_bound)
{
	double small[6] = {0.239, 0.522, 0.239, 0.239, 0.522, 0.239}, large[42];
	struct operation op = {.kind = OPERATION_SEPARABLE, .radius_x = 1, .radius_y = 1};

	op.coefficients = small;
	assert_true(half_error_bound(KERNEL_SEPARABLE_HALF, &op) < 0.5);
	for (int i = 0; i < 42; i++)
		large[i] = 1 / 21.0;
	op.radius_x = op.radius_y = 10;
	op.coefficients = large;
	assert_true(half_error_bound(KERNEL_SEPARABLE_HALF, &op) > 1);
	assert_true(half_error_bound(KERNEL_SEPARABLE_MMA, &op) < 1);
}

/* The largest power of two for which neither weights nor sums overflow. */
TEST(test_fixed)
{
	double matrix[9] = {0, -1, 0, -1, 5, -1, 0, -1, 0}, mean[9];
	struct operation op = {.kind = OPERATION_MATRIX, .radius_x = 1, .radius_y = 1};

	op.coefficients = matrix;
	assert_int_equal(fixed_shift(&op), 12); /* 5 << 12 fits 16 bits, 5 << 13 does not */
	assert_true(half_error_bound(KERNEL_MATRIX_FIXED, &op) <= 0x1p-12);
	op.offset = 1e6; /* (1e6 + 255 * 9 + 256) << 11 fits 31 bits */
	assert_int_equal(fixed_shift(&op), 11);
	op.offset = 0;
	for (int i = 0; i < 9; i++)
		mean[i] = 1 / 9.0;
	op.coefficients = mean;
	assert_int_equal(fixed_shift(&op), 18);
	assert_true(half_error_bound(KERNEL_MATRIX_FIXED, &op) < 0.01);
	matrix[4] = 40000;
	op.coefficients = matrix;
	assert_int_equal(fixed_shift(&op), 0);
	assert_true(half_error_bound(KERNEL_MATRIX_FIXED, &op) > 1);
}

/* Here the first is known to be exact enough, the others not. */
TEST(test_bilateral_bound)
{
	static const struct {
		double range;
		uint32_t radius;
		bool exact;
	} rows[] = {{0.12, 4, true}, {0.4, 4, false}, {0.15, 16, false}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct operation op = {.kind = OPERATION_BILATERAL,
		                             .radius_x = rows[i].radius,
		                             .radius_y = rows[i].radius,
		                             .space = -1 / (2 * 5.0 * 5.0),
		                             .range = -1 / (2 * rows[i].range * rows[i].range)};

		assert_int_equal(half_error_bound(KERNEL_BILATERAL_TABLE, &op) < 1, rows[i].exact);
	}
}
