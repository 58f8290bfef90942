/* Means and Gaussians, differences from them, and other smoothing filters. */
#include <math.h>

#include "filters/filters.h"

/* The radius of a Gaussian that is cut off. */
static uint32_t cut_radius(double sigma)
{
	return (uint32_t)ceil(3 * sigma);
}

uint32_t filter_gaussian_radius(double sigma)
{
	const struct lattice lattice = lattice_for(sigma);

	return lattice.stride ? lattice.reach : cut_radius(sigma);
}

double filter_gaussian_sigma(double radius)
{
	return 0.3 * (radius - 1) + 0.8;
}

/* Sets one direction of a Gaussian, with sum 1. */
static void set_weights(double *weights, uint32_t radius, double sigma)
{
	double sum = 0;

	for (uint32_t i = 0; i <= 2 * radius; i++) {
		const double d = (double)i - radius;

		sum += weights[i] = exp(-d * d / (2 * sigma * sigma));
	}
	for (uint32_t i = 0; i <= 2 * radius; i++)
		weights[i] /= sum;
}

void filter_blur(struct operation *op, double sigma_x, double sigma_y)
{
	set_weights(op->coefficients, op->radius_x, sigma_x);
	set_weights(op->coefficients + 2 * op->radius_x + 1, op->radius_y, sigma_y);
}

/* True if each direction has its own sigma: a gaussian is then cut at its radius, however large. */
static bool is_directed(const struct filter_call *call)
{
	return !isnan(call->value[GAUSSIAN_SIGMA_X]) || !isnan(call->value[GAUSSIAN_SIGMA_Y]);
}

/* Returns a direction's sigma: its own, or the common one, which may follow from the size. */
static double direction_sigma(const struct filter_call *call, double own)
{
	const double sigma = call->value[GAUSSIAN_SIGMA], size = call->value[GAUSSIAN_SIZE];

	if (!isnan(own) || !isnan(sigma))
		return isnan(own) ? sigma : own;
	return isnan(size) ? 1 : filter_gaussian_sigma((size - 1) / 2);
}

static uint32_t direction_radius(const struct filter_call *call, double own)
{
	const double sigma = direction_sigma(call, own), size = call->value[GAUSSIAN_SIZE];

	if (!isnan(size))
		return ((uint32_t)size - 1) / 2;
	return is_directed(call) ? cut_radius(sigma) : filter_gaussian_radius(sigma);
}

static void gaussian_radius(const struct filter_call *call, uint32_t *x, uint32_t *y)
{
	*x = direction_radius(call, call->value[GAUSSIAN_SIGMA_X]);
	*y = direction_radius(call, call->value[GAUSSIAN_SIGMA_Y]);
}

static double gaussian_sigma(const struct filter_call *call)
{
	return isnan(call->value[GAUSSIAN_SIZE]) && !is_directed(call) ? direction_sigma(call, NAN)
	                                                               : 0;
}

static void lower_gaussian(const struct filter_call *call, struct operation *op)
{
	filter_blur(op, direction_sigma(call, call->value[GAUSSIAN_SIGMA_X]),
	            direction_sigma(call, call->value[GAUSSIAN_SIGMA_Y]));
}

const struct filter_row filter_of_GAUSSIAN = {
    .radius = gaussian_radius, .sigma = gaussian_sigma, .smoothing = true, .lower = lower_gaussian};

static void lower_box(const struct filter_call *, struct operation *op)
{
	filter_blur(op, INFINITY, INFINITY);
}

const struct filter_row filter_of_BOX = {
    .window = {BY_WIDTH, 1, BOX_SIZE}, .smoothing = true, .lower = lower_box};

static void lower_unsharp(const struct filter_call *call, struct operation *op)
{
	filter_blur(op, call->value[UNSHARP_SIGMA], call->value[UNSHARP_SIGMA]);
	op->amount = call->value[UNSHARP_AMOUNT];
	op->threshold = call->value[UNSHARP_THRESHOLD];
	op->gain = 1 + 2 * op->amount;
}

const struct filter_row filter_of_UNSHARP = {.window = {BY_LATTICE, 0, UNSHARP_SIGMA},
                                             .lower = lower_unsharp};

static void dog_radius(const struct filter_call *call, uint32_t *x, uint32_t *y)
{
	*x = *y = cut_radius(fmax(call->value[DOG_SIGMA1], call->value[DOG_SIGMA2]));
}

/* Sets one of two Gaussians; it is 0 beyond its own radius. */
static void set_part(double *weights, uint32_t radius, double sigma)
{
	const uint32_t own = cut_radius(sigma);

	set_weights(weights + radius - own, own, sigma);
}

/* The image itself is the first "Gaussian" of a highpass. */
static void lower_difference(const struct filter_call *call, struct operation *op)
{
	const uint32_t radius = op->radius_x;
	double *second = op->coefficients + 2 * radius + 1;

	if (call->filter == FILTER_HIGHPASS) {
		op->coefficients[radius] = 1;
		set_part(second, radius, call->value[HIGHPASS_SIGMA]);
	} else {
		set_part(op->coefficients, radius, call->value[DOG_SIGMA1]);
		set_part(second, radius, call->value[DOG_SIGMA2]);
	}
	op->gain = 2;
}

const struct filter_row filter_of_DOG = {
    .radius = dog_radius, .signed_output = true, .lower = lower_difference};
const struct filter_row filter_of_HIGHPASS = {
    .window = {BY_VALUE, 3, HIGHPASS_SIGMA}, .signed_output = true, .lower = lower_difference};

static void lower_bilateral(const struct filter_call *call, struct operation *op)
{
	const double space = call->value[BILATERAL_SIGMA_SPACE];
	const double range = call->value[BILATERAL_SIGMA_RANGE];

	op->space = -1 / (2 * space * space);
	op->range = -1 / (2 * range * range);
}

const struct filter_row filter_of_BILATERAL = {
    .window = {BY_VALUE, 1, BILATERAL_RADIUS}, .smoothing = true, .lower = lower_bilateral};

const struct filter_row filter_of_PIXELATE = {.window = {BY_WIDTH, 2, PIXELATE_SIZE},
                                              .smoothing = true};
