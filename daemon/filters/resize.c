#include "filters/resize.h"

#include <math.h>
#include <stdio.h>

#include "filters/filters.h"

_Static_assert((int)FILTER_PARAMETERS_MAX > (int)RESIZE_KERNEL, "each has its value");

/* ---- sizes ---- */

/* Returns a side in pixels; NAN: not given. */
static double wanted_side(const struct filter_call *call, size_t i)
{
	return isnan(call->value[i]) ? NAN : fmax(1, floor(call->value[i] + 0.5));
}

static enum error check_side(const char *name, uint32_t from, double to, struct problem *problem)
{
	char text[32];

	if (to >= 1 && to <= IMAGE_SIDE_MAX && to <= (double)from * RESIZE_RATIO_MAX &&
	    to * RESIZE_RATIO_MAX >= from)
		return ERR_OK;
	snprintf(text, sizeof text, "%g", to);
	return filter_refuse(problem, name, text,
	                     "the image's (or roi's) %s is %u pixels and the result's would be %g; "
	                     "expected at most %d, and a ratio from 1/%d to %d",
	                     name, from, to, IMAGE_SIDE_MAX, RESIZE_RATIO_MAX, RESIZE_RATIO_MAX);
}

enum error resize_find(const struct filter_call *call, uint32_t width, uint32_t height,
                       struct resizing *across, struct resizing *down, struct problem *problem)
{
	/* Shares of what is cut off that lie left and above, in the order of the choices. */
	static const double left[] = {0.5, 0.5, 1, 1, 1, 0.5, 0, 0, 0},
	                    above[] = {0.5, 0, 0, 0.5, 1, 1, 1, 0.5, 0};
	const double most = call->value[RESIZE_ENLARGE] > 0 ? INFINITY : 1;
	const size_t gravity = (size_t)call->value[RESIZE_GRAVITY];
	const int fit = (int)call->value[RESIZE_FIT];
	const enum resample kernel = (enum resample)call->value[RESIZE_KERNEL];
	const double w = wanted_side(call, RESIZE_WIDTH), h = wanted_side(call, RESIZE_HEIGHT);
	const double x = w / width, y = h / height; /* fmin() and fmax() leave out NAN */
	double scale_x, scale_y, to_x, to_y;
	enum error e;

	scale_x = fmin(fit == RESIZE_COVER ? fmax(x, y) : fmin(x, y), most);
	scale_y = scale_x;
	if (fit == RESIZE_FILL) {
		scale_x = fmin(isnan(x) ? 1 : x, most);
		scale_y = fmin(isnan(y) ? 1 : y, most);
	}
	to_x = fmax(1, floor(width * scale_x + 0.5));
	to_y = fmax(1, floor(height * scale_y + 0.5));
	if (fit == RESIZE_COVER) { /* cut to what was asked for */
		to_x = fmin(to_x, w);
		to_y = fmin(to_y, h);
	}
	e = check_side("width", width, to_x, problem);
	if (!e)
		e = check_side("height", height, to_y, problem);
	if (e)
		return e;
	*across = (struct resizing){width, (uint32_t)to_x, 0, width / to_x, kernel};
	*down = (struct resizing){height, (uint32_t)to_y, 0, height / to_y, kernel};
	if (fit == RESIZE_COVER) {
		across->step = down->step = 1 / scale_x;
		across->first = fmax(0, width - to_x / scale_x) * left[gravity];
		down->first = fmax(0, height - to_y / scale_x) * above[gravity];
		if (scale_x == 1) { /* what is only cut keeps its pixels */
			across->first = floor(across->first);
			down->first = floor(down->first);
		}
	}
	return ERR_OK;
}

/* ---- kernels ---- */

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
		return ((12 - 9 * b - 6 * c) * a * a * a + (-18 + 12 * b + 6 * c) * a * a + 6 - 2 * b) / 6;
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
static double box(double x)
{
	(void)x;
	return 1;
}

static const struct {
	double radius; /* 0: the pixel in which the centre lies */
	double (*at)(double x);
} kernels[RESAMPLES] = {
    [RESAMPLE_LANCZOS3] = {3, lanczos3},     [RESAMPLE_LANCZOS2] = {2, lanczos2},
    [RESAMPLE_MITCHELL] = {2, mitchell},     [RESAMPLE_CATMULLROM] = {2, catmullrom},
    [RESAMPLE_TRIANGLE] = {1, triangle},     [RESAMPLE_BOX] = {0.5, box},
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

/* Returns the source's pixels whose centres are within the kernel's reach of a pixel's. A centre on its
 * left end, to within rounding, is not; one on its right end is. */
static struct extent reach(const struct resizing *r, int32_t i)
{
	const double c = centre(r, i) + ROUNDING, radius = kernels[r->kernel].radius * stretch(r);
	const int32_t first = (int32_t)floor(c - radius + 0.5), end = (int32_t)floor(c + radius + 0.5);

	if (r->kernel == RESAMPLE_NEAREST || end <= first)
		return (struct extent){(int32_t)floor(c), 1};
	return (struct extent){first, (uint32_t)(end - first)};
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

/* ---- the filter ---- */

static enum error check_resize(const struct filter_call *call, const double *coefficients,
                               struct problem *problem)
{
	const bool w = !isnan(call->value[RESIZE_WIDTH]), h = !isnan(call->value[RESIZE_HEIGHT]);

	(void)coefficients;
	if (!w && !h)
		return filter_refuse(problem, "width", "",
		                     "expected width, height or both, as in width=320");
	if (call->value[RESIZE_FIT] == RESIZE_COVER && !(w && h))
		return filter_refuse(problem, w ? "height" : "width", "",
		                     "expected both sides with fit=cover");
	return ERR_OK;
}

const struct filter_row filter_of_RESIZE = {.check = check_resize, .smoothing = true};
