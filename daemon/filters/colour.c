/* Filters that mix the colours of a pixel: each is a row of weights of all of them. */
#include <math.h>
#include <string.h>

#include "filters/family.h"

static void lower_grayscale(const struct filter_call *call, struct operation *op)
{
	static const double weights[3][3] = {
	    {0.299, 0.587, 0.114}, {0.2126, 0.7152, 0.0722}, {1.0 / 3, 1.0 / 3, 1.0 / 3}};
	const double *of = weights[(size_t)call->value[GRAYSCALE_WEIGHTS]];

	for (size_t i = 0; i < 3; i++)
		memcpy(op->coefficients + i * (BANDS_MAX + 1), of, 3 * sizeof *of);
	op->by_band = true;
}

const struct filter_row filter_of_GRAYSCALE = {
    .mixes = true, .takes_grey = true, .lower = lower_grayscale};

static bool makes_alpha(const struct filter_call *call)
{
	return call->numbers[COLORMATRIX_MATRIX].height == BANDS_MAX;
}

static enum error check_colormatrix(const struct filter_call *call, struct problem *problem)
{
	const struct numbers *n = &call->numbers[COLORMATRIX_MATRIX];

	if ((n->width == 4 && n->height == 3) || (n->width == 5 && n->height == 4))
		return ERR_OK;
	return filter_refuse(
	    problem, "matrix", "",
	    "expected 3 rows of 4 numbers, or 4 of 5, as in 1.1,0,0,0;0,1,0,0;0,0,0.9,0");
}

static void lower_colormatrix(const struct filter_call *call, const double *coefficients,
                              struct operation *op)
{
	const struct numbers *n = &call->numbers[COLORMATRIX_MATRIX];

	op->by_band = true;
	op->makes_alpha = makes_alpha(call);
	op->gain = 0;
	for (uint32_t i = 0; i < n->height; i++) {
		const double *from = coefficients + n->first + (size_t)i * n->width;
		double *to = op->coefficients + (size_t)i * (BANDS_MAX + 1);

		memcpy(to, from, (n->width - 1) * sizeof *to);
		to[BANDS_MAX] = from[n->width - 1];
		op->gain = fmax(op->gain, fabs(to[0]) + fabs(to[1]) + fabs(to[2]) + fabs(to[3]));
	}
}

const struct filter_row filter_of_COLORMATRIX = {.check = check_colormatrix,
                                                 .mixes = true,
                                                 .makes_alpha = makes_alpha,
                                                 .lower_numbers = lower_colormatrix};
