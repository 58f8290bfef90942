/* Upper bounds computed from the weights: the rounding error of each weight and half an ulp for
 * each rounded sum, in the worst case: bytes of 255 under weights of one sign, else 0. */
#include "device/plan/half_error.h"

#include <CL/cl_half.h>
#include <math.h>

#include "local.h"

/* Rounds to the nearest half float; the header would shift a sign out of an int. */
static double half_round(double value)
{
	const cl_half magnitude = cl_half_from_double(fabs(value), CL_HALF_RTE);

	return copysign((double)cl_half_to_float(magnitude), value);
}

/* Half an ulp of a half float of this magnitude. */
static double half_ulp(double v)
{
	int exponent;

	frexp(v, &exponent);
	return v > 0 ? ldexp(1, exponent - 12) : 0;
}

/* The error due to rounding the weights: to half floats, in levels of a byte; or (shift) times
 * 2^shift to integers, in their units. */
static double weights_bound(const double *weights, size_t count, int shift)
{
	double up = 0, down = 0;

	for (size_t i = 0; i < count; i++) {
		double scaled = ldexp(weights[i], shift);
		double error = (shift ? rint(scaled) : half_round(scaled)) - scaled;

		*(error > 0 ? &up : &down) += fabs(error);
	}
	return 255 * fmax(up, down);
}

/* Half an ulp for each partial sum of a row. Kernels add first, last, second, last but one, … */
static double sums_bound(const double *weights, size_t count)
{
	double plus = 0, minus = 0, bound = 0;

	for (size_t i = 0; i < count; i++) {
		double w = half_round(weights[i % 2 ? count - 1 - i / 2 : i / 2]);

		*(w > 0 ? &plus : &minus) += fabs(w);
		bound += half_ulp(255 * fmax(plus, minus));
	}
	return bound;
}

static double separable_bound(const struct operation *op)
{
	const size_t width = 2 * (size_t)op->radius_x + 1, height = 2 * (size_t)op->radius_y + 1;
	const double *column = op->coefficients + width;

	return weights_bound(op->coefficients, width, 0) + sums_bound(op->coefficients, width) +
	       weights_bound(column, height, 0) + sums_bound(column, height) +
	       (double)(width + height) * 0x1p-16;
}

static double mma_bound(const struct operation *op)
{
	const size_t width = 2 * (size_t)op->radius_x + 1, height = 2 * (size_t)op->radius_y + 1;

	return weights_bound(op->coefficients, width, 0) +
	       weights_bound(op->coefficients + width, height, 0) + 0.135;
}

static double matrix_bound(const struct operation *op)
{
	enum { UNROLLED = 49 }; /* MATRIX_UNROLLED in gpu/matrix_half.cl */
	const size_t width = 2 * (size_t)op->radius_x + 1, height = 2 * (size_t)op->radius_y + 1;
	double plus = 0, minus = 0;
	double bound =
	    weights_bound(op->coefficients, width * height, 0) + (double)(width * height) * 0x1p-13;

	if (op->offset != floor(op->offset) || op->offset < 0 || op->offset > 1023)
		return INFINITY;
	for (size_t j = 0; j < height; j++) {
		const double *row = op->coefficients + j * width;

		bound += sums_bound(row, width);
		for (size_t i = 0; i < width; i++) {
			if (fabs(row[i]) >= 15.9)
				return INFINITY;
			*(row[i] > 0 ? &plus : &minus) += fabs(row[i]);
		}
		if (j > 0 && width * height <= UNROLLED)
			bound += half_ulp(255 * fmax(plus, minus));
	}
	return bound;
}

/* Sums of bytes up to 2048 are exact; only the roundings of the magnitude remain. */
static double gradient_bound(const struct operation *op)
{
	const double *smooth = op->coefficients;

	return 255 * (smooth[0] + smooth[1] + smooth[2]) <= 2048 ? 0.2 : INFINITY;
}

int fixed_shift(const struct operation *op)
{
	enum { MOST = 22 };
	const size_t count = (2 * (size_t)op->radius_x + 1) * (2 * (size_t)op->radius_y + 1);
	double largest = 0, sum = 0;
	int shift = MOST;

	for (size_t i = 0; i < count; i++) {
		largest = fmax(largest, fabs(op->coefficients[i]));
		sum += fabs(op->coefficients[i]);
	}
	while (shift > 0 && (ldexp(largest, shift) > 32767 ||
	                     ldexp(255 * sum + fabs(op->offset) + 256, shift) > 0x7f000000))
		shift--;
	return shift;
}

static double matrix_fixed_bound(const struct operation *op)
{
	const size_t count = (2 * (size_t)op->radius_x + 1) * (2 * (size_t)op->radius_y + 1);
	const int shift = fixed_shift(op);

	return shift < 1 ? INFINITY
	                 : ldexp(weights_bound(op->coefficients, count, shift) + 1, -shift) +
	                       fabs(op->offset) * 0x1p-24;
}

static double bilateral_bound(const struct operation *op)
{
	const double range = op->range / (255.0 * 255.0);
	const int radius = (int)op->radius_x;
	double taps = 0, weight = 0, mean = 0;

	for (int j = -radius; j <= radius; j++)
		for (int i = -radius; i <= radius; i++)
			if (i * i + j * j <= radius * radius && (i || j)) {
				taps++;
				weight += exp(op->space * (i * i + j * j));
			}
	/* The mean of |d| is largest where all taps have the same d. */
	for (int d = 1; d <= 255; d++) {
		double w = weight * exp(range * d * d);

		mean = fmax(mean, w * d / (1 + w));
	}
	return 2.01 * (radius + 4) * 0x1p-11 * mean +
	       taps * (0x1p-16 +
	               255 * exp(range * BILATERAL_TABLE_DISTANCE * BILATERAL_TABLE_DISTANCE));
}

double half_error_bound(enum kernel kernel, const struct operation *op)
{
	static const struct {
		enum operation_kind kind;
		double (*bound)(const struct operation *op);
	} rows[KERNELS] = {
	    [KERNEL_SEPARABLE_HALF] = {OPERATION_SEPARABLE, separable_bound},
	    [KERNEL_SEPARABLE_MMA] = {OPERATION_SEPARABLE, mma_bound},
	    [KERNEL_MATRIX_HALF] = {OPERATION_MATRIX, matrix_bound},
	    [KERNEL_MATRIX_FIXED] = {OPERATION_MATRIX, matrix_fixed_bound},
	    [KERNEL_GRADIENT_HALF] = {OPERATION_GRADIENT, gradient_bound},
	    [KERNEL_BILATERAL_TABLE] = {OPERATION_BILATERAL, bilateral_bound},
	};

	return rows[kernel].bound && rows[kernel].kind == op->kind ? rows[kernel].bound(op)
	                                                           : INFINITY;
}
