/* Matrices: a request's, and those of filters; gradients, and the edges that are found by them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "filters/filters.h"

static void convolve_radius(const struct filter_call *call, uint32_t *x, uint32_t *y)
{
	*x = (call->numbers[CONVOLVE_KERNEL].width - 1) / 2;
	*y = (call->numbers[CONVOLVE_KERNEL].height - 1) / 2;
}

/* A matrix's sum of magnitudes, its divisor (given or not), and whether its own sum is not 0. */
struct sums {
	double magnitudes, scale;
	bool smoothing;
};

static struct sums find_sums(const struct filter_call *call, const double *coefficients)
{
	const struct numbers *n = &call->numbers[CONVOLVE_KERNEL];
	const double *matrix = coefficients + n->first;
	struct sums sums = {.scale = call->value[CONVOLVE_SCALE]};
	double sum = 0;

	for (uint32_t i = 0; i < n->width * n->height; i++) {
		sum += matrix[i];
		sums.magnitudes += fabs(matrix[i]);
	}
	/* Treats a sum as 0 if it is no larger than the rounding error of its terms. */
	sums.smoothing = fabs(sum) > 1e-9 * sums.magnitudes;
	if (isnan(sums.scale))
		sums.scale = sums.smoothing ? sum : 1;
	return sums;
}

/* Refuses a matrix whose sums are not exact enough. Up to this gain, sums of 16-bit pixels in pairs
 * of floats, which lose 2^-48 of it for each term, are off by less than 1. */
static enum error check_convolve(const struct filter_call *call, const double *coefficients,
                                 struct problem *problem)
{
	const struct numbers *n = &call->numbers[CONVOLVE_KERNEL];
	const struct sums sums = find_sums(call, coefficients);
	const double max = 0x1p32 / (n->width * n->height + 2), given = call->value[CONVOLVE_SCALE];
	char text[32];

	if (!n->width)
		return bad_parameter(problem, "kernel", "",
		                     "convolve needs kernel, as in kernel=1,2,1;2,4,2;1,2,1");
	if (given == 0)
		return filter_refuse(problem, "scale", "0", "expected a number other than 0");
	if (sums.magnitudes <= max * fabs(sums.scale))
		return ERR_OK;
	if (isnan(given)) {
		snprintf(text, sizeof text, "%ux%u", n->width, n->height);
		return filter_refuse(problem, "kernel", text,
		                     "its magnitudes add up to %g, and it is divided by %g; "
		                     "expected a quotient of at most %g",
		                     sums.magnitudes, sums.scale, max);
	}
	snprintf(text, sizeof text, "%g", given);
	return filter_refuse(
	    problem, "scale", text,
	    "expected a magnitude of at least %g for this kernel, whose magnitudes add up to %g",
	    sums.magnitudes / max, sums.magnitudes);
}

/* Splits a matrix of rank 1 into row and column through its largest coefficient; returns false if
 * its rank is higher. The row's magnitudes have sum 1, so that a mean is a mean of rows and one of
 * columns. */
static bool split(const double *matrix, uint32_t width, uint32_t height, double scale,
                  double *coefficients)
{
	uint32_t pivot = 0;

	for (uint32_t i = 1; i < width * height; i++)
		if (fabs(matrix[i]) > fabs(matrix[pivot]))
			pivot = i;

	const double peak = matrix[pivot];
	const double *row = matrix + pivot / width * width, *column = matrix + pivot % width;

	if (peak == 0)
		return false;
	for (uint32_t j = 0; j < height; j++)
		for (uint32_t i = 0; i < width; i++)
			if (fabs(matrix[j * width + i] - row[i] * (column[j * width] / peak)) >
			    1e-12 * fabs(peak))
				return false;
	double size = 0;

	for (uint32_t i = 0; i < width; i++)
		size += fabs(row[i]);
	size = copysign(size, peak);
	for (uint32_t i = 0; i < width; i++)
		coefficients[i] = row[i] / size;
	for (uint32_t j = 0; j < height; j++)
		coefficients[width + j] = column[j * width] / peak * (size / scale);
	return true;
}

static void lower_convolve(const struct filter_call *call, const double *coefficients,
                           struct operation *op)
{
	const struct numbers *n = &call->numbers[CONVOLVE_KERNEL];
	const double *matrix = coefficients + n->first;
	const struct sums sums = find_sums(call, coefficients);

	op->smoothing = sums.smoothing;
	op->offset = call->value[CONVOLVE_OFFSET];
	op->gain = sums.magnitudes / fabs(sums.scale);
	if (n->width > 1 && n->height > 1 &&
	    split(matrix, n->width, n->height, sums.scale, op->coefficients)) {
		op->kind = OPERATION_SEPARABLE;
		return;
	}
	for (uint32_t i = 0; i < n->width * n->height; i++)
		op->coefficients[i] = matrix[i] / sums.scale;
}

const struct filter_row filter_of_CONVOLVE = {.radius = convolve_radius,
                                              .check = check_convolve,
                                              .also = 1u << OPERATION_SEPARABLE,
                                              .lower_numbers = lower_convolve};

/* Sets a matrix of 3x3. */
static void set_3x3(const double matrix[9], struct operation *op)
{
	memcpy(op->coefficients, matrix, 9 * sizeof *matrix);
	op->gain = 0;
	for (int i = 0; i < 9; i++)
		op->gain += fabs(matrix[i]);
}

static void lower_laplacian(const struct filter_call *call, struct operation *op)
{
	static const double matrices[2][9] = {{0, 1, 0, 1, -4, 1, 0, 1, 0},
	                                      {1, 1, 1, 1, -8, 1, 1, 1, 1}};

	set_3x3(matrices[(size_t)call->value[LAPLACIAN_CONNECTIVITY]], op);
}

static void lower_emboss(const struct filter_call *, struct operation *op)
{
	set_3x3((const double[]){-2, -1, 0, -1, 1, 1, 0, 1, 2}, op);
}

/* The identity, enlarged, less a Gaussian of size 3. */
static void lower_sharpen(const struct filter_call *call, struct operation *op)
{
	const double sigma = filter_gaussian_sigma(1), amount = call->value[SHARPEN_AMOUNT];
	double matrix[9], taps[3], sum = 0;

	for (int i = 0; i < 3; i++)
		sum += taps[i] = exp(-(i - 1.0) * (i - 1.0) / (2 * sigma * sigma));
	for (int i = 0; i < 9; i++)
		matrix[i] =
		    (i == 4 ? 1 + amount : 0) - amount * taps[i / 3] * taps[i % 3] / (sum * sum);
	set_3x3(matrix, op);
}

const struct filter_row filter_of_LAPLACIAN = {
    .window = {.number = 1}, .signed_output = true, .lower = lower_laplacian};
const struct filter_row filter_of_EMBOSS = {.window = {.number = 1}, .lower = lower_emboss};
const struct filter_row filter_of_SHARPEN = {
    .window = {.number = 1}, .smoothing = true, .lower = lower_sharpen};

/* sigma² times the second derivatives of a Gaussian, shifted to sum 0 by a multiple of it. */
static void lower_log(const struct filter_call *call, struct operation *op)
{
	const double sigma = call->value[LOG_SIGMA];
	const int radius = (int)op->radius_x;
	double sum = 0, moment = 0, *at = op->coefficients;

	op->gain = 0;
	for (int pass = 0; pass < 2; pass++, at = op->coefficients)
		for (int y = -radius; y <= radius; y++)
			for (int x = -radius; x <= radius; x++, at++) {
				const double r2 = (x * x + y * y) / (sigma * sigma);
				const double g = exp(-r2 / 2);

				if (pass)
					op->gain += fabs(*at = (r2 - moment / sum) * g / sum);
				else
					sum += g, moment += r2 * g;
			}
}

const struct filter_row filter_of_LOG = {
    .window = {BY_VALUE, 4, LOG_SIGMA}, .signed_output = true, .lower = lower_log};

/* Half of the line from its first to its last pixel, and its direction; y down. */
static double motion_line(const struct filter_call *call, double *x, double *y)
{
	const double angle = call->value[MOTION_ANGLE] * M_PI / 180;

	*x = cos(angle);
	*y = -sin(angle);
	return (call->value[MOTION_LENGTH] - 1) / 2;
}

/* Pixels less than 1 away from the line count, apart from rounding. */
static void motion_radius(const struct filter_call *call, uint32_t *radius_x, uint32_t *radius_y)
{
	double x, y, half = motion_line(call, &x, &y);

	*radius_x = (uint32_t)ceil(half * fabs(x) - 1e-9);
	*radius_y = (uint32_t)ceil(half * fabs(y) - 1e-9);
}

/* A pixel's weight is the nearness of its centre to the line: 1 on it, 0 from 1 pixel away. */
static void lower_motion(const struct filter_call *call, struct operation *op)
{
	const int rx = (int)op->radius_x, ry = (int)op->radius_y;
	double x, y, half = motion_line(call, &x, &y), sum = 0, *at = op->coefficients;

	for (int j = -ry; j <= ry; j++)
		for (int i = -rx; i <= rx; i++, at++) {
			const double along = fmin(fmax(i * x + j * y, -half), half);

			*at = fmax(0, 1 - hypot(i - along * x, j - along * y));
			sum += *at;
		}
	while (at-- > op->coefficients)
		*at /= sum;
}

const struct filter_row filter_of_MOTION = {
    .radius = motion_radius, .smoothing = true, .lower = lower_motion};

/* ---- gradients ---- */

_Static_assert((int)SOBEL_OUTPUT == (int)SCHARR_OUTPUT && (int)SOBEL_OUTPUT == (int)PREWITT_OUTPUT,
               "a parameter of all");

static void lower_gradient(const struct filter_call *call, struct operation *op)
{
	/* Those of the smoothing across the derivative. */
	static const double weights[FILTERS][3] = {
	    [FILTER_SOBEL] = {1, 2, 1}, [FILTER_SCHARR] = {3, 10, 3}, [FILTER_PREWITT] = {1, 1, 1}};
	const double *w = weights[call->filter];

	memcpy(op->coefficients, w, 3 * sizeof *w);
	op->output = (enum gradient_output)call->value[SOBEL_OUTPUT];
	op->signed_output = op->output == GRADIENT_X || op->output == GRADIENT_Y;
	op->gain = 2 * (w[0] + w[1] + w[2]);
	if (op->output == GRADIENT_MAGNITUDE)
		op->gain *= sqrt(2);
}

const struct filter_row filter_of_SOBEL = {.window = {.number = 1}, .lower = lower_gradient};
const struct filter_row filter_of_SCHARR = {.window = {.number = 1}, .lower = lower_gradient};
const struct filter_row filter_of_PREWITT = {.window = {.number = 1}, .lower = lower_gradient};

double filter_canny_sigma(const struct filter_call *call)
{
	return call->value[CANNY_SIGMA] < 0.1 ? 0 : call->value[CANNY_SIGMA];
}

static void canny_radius(const struct filter_call *call, uint32_t *x, uint32_t *y)
{
	const double sigma = filter_canny_sigma(call);

	*x = *y = 2 + (sigma > 0 ? filter_gaussian_radius(sigma) : 0);
}

static enum error check_canny(const struct filter_call *call, const double *,
                              struct problem *problem)
{
	if (call->value[CANNY_LOW] <= call->value[CANNY_HIGH])
		return ERR_OK;
	return filter_refuse(problem, "high", "", "expected at least low, which is %g",
	                     call->value[CANNY_LOW]);
}

/* Once its edges are known, they only have to be drawn. */
static void lower_canny(const struct filter_call *call, const double *coefficients,
                        struct operation *op)
{
	op->low = call->value[CANNY_LOW];
	op->high = call->value[CANNY_HIGH];
	if (!call->gathered.width)
		return;
	op->kind = OPERATION_EDGES;
	filter_set_plane(call, coefficients, op);
}

static enum gather canny_gathers(const struct filter_call *)
{
	return GATHER_EDGES;
}

const struct filter_row filter_of_CANNY = {.radius = canny_radius,
                                           .check = check_canny,
                                           .gathers = canny_gathers,
                                           .lower_numbers = lower_canny};
