#include "image/resampling.h"

#include <math.h>
#include <stddef.h>

static double sinc(double x)
{
	if (x == floor(x)) /* exactly: alpha is divided by such sums */
		return x == 0;
	return sin(M_PI * x) / (M_PI * x);
}

static double lanczos3(double x)
{
	return fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static double lanczos2(double x)
{
	return fabs(x) < 2 ? sinc(x) * sinc(x / 2) : 0;
}

/* The family of Mitchell and Netravali. */
static double cubic(double x, double b, double c)
{
	const double a = fabs(x);

	if (a < 1)
		return ((12 - 9 * b - 6 * c) * a * a * a + (-18 + 12 * b + 6 * c) * a * a + 6 -
		        2 * b) /
		       6;
	if (a < 2)
		return ((-b - 6 * c) * a * a * a + (6 * b + 30 * c) * a * a +
		        (-12 * b - 48 * c) * a + 8 * b + 24 * c) /
		       6;
	return 0;
}

static double mitchell(double x)
{
	return cubic(x, 1 / 3.0, 1 / 3.0);
}

static double catmullrom(double x)
{
	return cubic(x, 0, 0.5);
}

static double triangle(double x)
{
	return fmax(0, 1 - fabs(x));
}

/* A pixel on the border of two stretches counts for the left one: see reach(). */
static double box(double)
{
	return 1;
}

static const struct {
	double radius; /* 0: the pixel in which the centre lies */
	double (*at)(double x);
} kernels[RESAMPLES] = {
    [RESAMPLE_LANCZOS3] = {3, lanczos3}, [RESAMPLE_LANCZOS2] = {2, lanczos2},
    [RESAMPLE_MITCHELL] = {2, mitchell}, [RESAMPLE_CATMULLROM] = {2, catmullrom},
    [RESAMPLE_TRIANGLE] = {1, triangle}, [RESAMPLE_BOX] = {0.5, box},
    [RESAMPLE_NEAREST] = {0, NULL},
};

/* Pixels: more than the rounding of a place. */
static const double ROUNDING = 1e-7;

/* The kernel is stretched by this. */
static double stretch(const struct resizing *r)
{
	return fmax(1, r->step);
}

static double centre(const struct resizing *r, int32_t i)
{
	return r->first + (i + 0.5) * r->step;
}

/* Returns the source's pixels whose centres are within the kernel's reach of a pixel's. A centre on
 * its left end, to within rounding, is not; one on its right end is. */
static struct extent reach(const struct resizing *r, int32_t i)
{
	const double c = centre(r, i) + ROUNDING, radius = kernels[r->kernel].radius * stretch(r);
	const int32_t first = (int32_t)floor(c - radius + 0.5),
	              end = (int32_t)floor(c + radius + 0.5);

	if (r->kernel == RESAMPLE_NEAREST || end <= first)
		return (struct extent){(int32_t)floor(c), 1};
	return (struct extent){first, (uint32_t)(end - first)};
}

void resizing_from_draft(struct resizing *r, uint32_t pixels, int32_t before, int32_t after)
{
	const double ratio = pixels / ((double)r->from + before + after);

	r->first = (r->first + before) * ratio;
	r->step *= ratio;
	r->from = pixels;
}

struct extent resizing_source(const struct resizing *r, struct extent result)
{
	const struct extent first = reach(r, result.first),
	                    last = reach(r, result.first + (int32_t)result.count - 1);

	return (struct extent){first.first,
	                       (uint32_t)(last.first + (int32_t)last.count - first.first)};
}

uint32_t resizing_taps(const struct resizing *r)
{
	return (uint32_t)ceil(2 * kernels[r->kernel].radius * stretch(r)) + 1;
}

struct extent resizing_weights(const struct resizing *r, int32_t i, double *weight)
{
	const struct extent from = reach(r, i);
	double sum = 0;

	for (uint32_t k = 0; k < from.count; k++) {
		const double x = (from.first + (int32_t)k + 0.5 - centre(r, i)) / stretch(r);

		weight[k] = from.count == 1 ? 1 : kernels[r->kernel].at(x);
		sum += weight[k];
	}
	for (uint32_t k = 0; k < from.count; k++)
		weight[k] /= sum;
	return from;
}
