/* Filters by the order of the samples in a window: ranks, extremes and morphology. */
#include <math.h>

#include "element.h"
#include "filters/filters.h"

_Static_assert((int)MEDIAN_RADIUS == (int)RANK_RADIUS && (int)MEDIAN_WINDOW == (int)RANK_WINDOW,
               "parameters of both");

static void lower_rank(const struct filter_call *call, struct operation *op)
{
	const double percentile = call->filter == FILTER_MEDIAN ? 50 : call->value[RANK_PERCENTILE];
	const int radius = (int)op->radius_x;
	uint32_t count = 0;

	op->element = call->value[RANK_WINDOW] > 0 ? ELEMENT_CIRCLE : ELEMENT_RECTANGLE;
	for (int j = -radius; j <= radius; j++)
		count += 2 * (uint32_t)element_half_width(j, radius, (int)op->element) + 1;
	op->rank = (uint32_t)floor(percentile / 100 * (count - 1) + 0.5);
}

const struct filter_row filter_of_MEDIAN = {.window = {BY_VALUE, 1, RANK_RADIUS},
                                            .lower = lower_rank};
const struct filter_row filter_of_RANK = {.window = {BY_VALUE, 1, RANK_RADIUS},
                                          .lower = lower_rank};

_Static_assert((int)ERODE_SIZE == (int)MORPHGRADIENT_SIZE &&
                   (int)ERODE_SHAPE == (int)MORPHGRADIENT_SHAPE,
               "parameters of all of morphology");

static void lower_morphology(const struct filter_call *call, struct operation *op)
{
	static const enum morphology morphologies[FILTERS] = {
	    [FILTER_OPEN] = MORPHOLOGY_OPEN,
	    [FILTER_CLOSE] = MORPHOLOGY_CLOSE,
	    [FILTER_TOPHAT] = MORPHOLOGY_TOPHAT,
	    [FILTER_BLACKHAT] = MORPHOLOGY_BLACKHAT,
	    [FILTER_MORPHGRADIENT] = MORPHOLOGY_GRADIENT,
	};

	op->element = (enum element)call->value[ERODE_SHAPE];
	op->largest = call->filter == FILTER_DILATE;
	op->morphology = morphologies[call->filter];
}

#define ROW(windows)                                                                               \
	{                                                                                          \
		.window = {BY_WIDTH, windows, ERODE_SIZE}, .lower = lower_morphology               \
	}

const struct filter_row filter_of_ERODE = ROW(1);
const struct filter_row filter_of_DILATE = ROW(1);
const struct filter_row filter_of_MORPHGRADIENT = ROW(1);
const struct filter_row filter_of_OPEN = ROW(2);
const struct filter_row filter_of_CLOSE = ROW(2);
const struct filter_row filter_of_TOPHAT = ROW(2);
const struct filter_row filter_of_BLACKHAT = ROW(2);
