/* Means and Gaussians, the differences from them, and what else smooths. */
#include <math.h>

#include "filters/family.h"

/* The radius of a Gaussian that is cut off. */
static uint32_t cut_radius(double sigma)
{
	return (uint32_t)ceil(3 * sigma);
}

uint32_t family_gaussian_radius(double sigma)
{
	const struct lattice lattice = lattice_for(sigma);

	return lattice.stride ? lattice.reach : cut_radius(sigma);
}

double family_gaussian_sigma(double radius)
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

void family_blur(struct operation *op, double sigma_x, double sigma_y)
{
	set_weights(op->coefficients, op->radius_x, sigma_x);
	set_weights(op->coefficients + 2 * op->radius_x + 1, op->radius_y, sigma_y);
	op->gain = 1;
}

/* True if a gaussian names its directions: it is then cut at its radius, however large. */
static bool is_directed(const struct filter_call *call)
{
	return !isnan(call->value[GAUSSIAN_SIGMA_X]) || !isnan(call->value[GAUSSIAN_SIGMA_Y]);
}

/* The sigma of one direction: its own, or that of both, which follows from the size. */
static double direction_sigma(const struct filter_call *call, double own)
{
	const double sigma = call->value[GAUSSIAN_SIGMA], size = call->value[GAUSSIAN_SIZE];

	if (!isnan(own) || !isnan(sigma))
		return isnan(own) ? sigma : own;
	return isnan(size) ? 1 : family_gaussian_sigma((size - 1) / 2);
}

static uint32_t direction_radius(const struct filter_call *call, double own)
{
	const double sigma = direction_sigma(call, own), size = call->value[GAUSSIAN_SIZE];

	if (!isnan(size))
		return ((uint32_t)size - 1) / 2;
	return is_directed(call) ? cut_radius(sigma) : family_gaussian_radius(sigma);
}

static uint32_t gaussian_radius_x(const struct filter_call *call)
{
	return direction_radius(call, call->value[GAUSSIAN_SIGMA_X]);
}

static uint32_t gaussian_radius_y(const struct filter_call *call)
{
	return direction_radius(call, call->value[GAUSSIAN_SIGMA_Y]);
}

static double gaussian_sigma(const struct filter_call *call)
{
	return isnan(call->value[GAUSSIAN_SIZE]) && !is_directed(call) ? direction_sigma(call, NAN)
	                                                               : 0;
}

static void lower_gaussian(const struct filter_call *call, struct operation *op)
{
	family_blur(op, direction_sigma(call, call->value[GAUSSIAN_SIGMA_X]),
	            direction_sigma(call, call->value[GAUSSIAN_SIGMA_Y]));
	op->smoothing = true;
}

const struct filter_row filter_of_GAUSSIAN = {.radius_x = gaussian_radius_x,
                                              .radius_y = gaussian_radius_y,
                                              .sigma = gaussian_sigma,
                                              .lower = lower_gaussian};

static uint32_t box_radius(const struct filter_call *call)
{
	return ((uint32_t)call->value[BOX_SIZE] - 1) / 2;
}

static void lower_box(const struct filter_call *call, struct operation *op)
{
	(void)call;
	family_blur(op, INFINITY, INFINITY);
	op->smoothing = true;
}

const struct filter_row filter_of_BOX = {.radius_x = box_radius, .lower = lower_box};

static double unsharp_sigma(const struct filter_call *call)
{
	return call->value[UNSHARP_SIGMA];
}

static uint32_t unsharp_radius(const struct filter_call *call)
{
	return family_gaussian_radius(call->value[UNSHARP_SIGMA]);
}

static void lower_unsharp(const struct filter_call *call, struct operation *op)
{
	family_blur(op, call->value[UNSHARP_SIGMA], call->value[UNSHARP_SIGMA]);
	op->amount = call->value[UNSHARP_AMOUNT];
	op->threshold = call->value[UNSHARP_THRESHOLD];
	op->gain = 1 + 2 * op->amount;
}

const struct filter_row filter_of_UNSHARP = {
    .radius_x = unsharp_radius, .sigma = unsharp_sigma, .lower = lower_unsharp};

static uint32_t dog_radius(const struct filter_call *call)
{
	return cut_radius(fmax(call->value[DOG_SIGMA1], call->value[DOG_SIGMA2]));
}

static uint32_t highpass_radius(const struct filter_call *call)
{
	return cut_radius(call->value[HIGHPASS_SIGMA]);
}

/* Sets one of two Gaussians, which is 0 beyond its own radius. */
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
	op->signed_output = true;
	op->gain = 2;
}

const struct filter_row filter_of_DOG = {.radius_x = dog_radius, .lower = lower_difference};
const struct filter_row filter_of_HIGHPASS = {.radius_x = highpass_radius,
                                              .lower = lower_difference};

static uint32_t bilateral_radius(const struct filter_call *call)
{
	return (uint32_t)call->value[BILATERAL_RADIUS];
}

static void lower_bilateral(const struct filter_call *call, struct operation *op)
{
	const double space = call->value[BILATERAL_SIGMA_SPACE];
	const double range = call->value[BILATERAL_SIGMA_RANGE];

	op->smoothing = true;
	op->space = -1 / (2 * space * space);
	op->range = -1 / (2 * range * range);
	op->gain = 1;
}

const struct filter_row filter_of_BILATERAL = {.radius_x = bilateral_radius,
                                               .lower = lower_bilateral};

static uint32_t pixelate_radius(const struct filter_call *call)
{
	return (uint32_t)call->value[PIXELATE_SIZE] - 1;
}

static void lower_pixelate(const struct filter_call *call, struct operation *op)
{
	(void)call;
	op->smoothing = true;
	op->gain = 1;
}

const struct filter_row filter_of_PIXELATE = {.radius_x = pixelate_radius, .lower = lower_pixelate};
