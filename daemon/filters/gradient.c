/* Gradients, and the edges that are found by them. */
#include <math.h>
#include <string.h>

#include "filters/filters.h"

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

static enum error check_canny(const struct filter_call *call, const double *coefficients,
                              struct problem *problem)
{
	(void)coefficients;
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
	op->plane = coefficients + call->gathered.first;
	op->plane_width = call->gathered.width;
	op->plane_height = call->gathered.height;
}

const struct filter_row filter_of_CANNY = {.radius = canny_radius,
                                           .check = check_canny,
                                           .gathers = GATHER_EDGES,
                                           .lower_numbers = lower_canny};
