/* The bilateral filter, in double precision. If its input has slack (after another filter), a
 * second pass over the window computes the result's slack: an error in a sample also changes the
 * weights, and the effect of that depends on the mean. With alpha weights as well, the slack is
 * then unlimited. */
#include "reference/apply.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/rows.h"

/* Kernels skip weights below 2^-100. That matters only where the sum of the weights is small. */
static const double SMALL_SUM = 1e-20;

/* A sum of terms of both signs is known if this share of their magnitudes is left. */
static const double LEFT = 1e-4;

/* One pixel of the bilateral filter: the sums over its window. */
struct bilateral {
	const struct operation *op;
	double full; /* full scale */
	const struct canvas *in;
	uint32_t colours;
	bool alpha_weighted;
	size_t centre;
	double weights, colour_weights; /* sums of w, and of w * alpha */
	double terms, peak;             /* sum of |w * alpha|; largest magnitude of a colour */
	double weights_min;             /* lower bound of `weights` */
	double off[BANDS_MAX];          /* upper bounds, see doubt_pixel() */
};

/* The squared distance e² of two pixels; *off: its maximum error. */
static double distance(const struct bilateral *b, size_t at, double *off)
{
	double e2 = 0;

	*off = 0;
	for (uint32_t k = 0; k < b->colours; k++) {
		double e = (b->in->value[at + k] - b->in->value[b->centre + k]) / b->full;
		double s = (b->in->slack[at + k] + b->in->slack[b->centre + k]) / b->full;

		e2 += e * e;
		*off += 2 * fabs(e) * s + s * s;
	}
	return e2;
}

/* Pixels of a row that are computed together; see struct bilateral. */
enum { SIDE_BY_SIDE = 64 };

struct sums {
	double weights[SIDE_BY_SIDE], colour_weights[SIDE_BY_SIDE];
	double terms[SIDE_BY_SIDE], peak[SIDE_BY_SIDE];
	double sum[BANDS_MAX][SIDE_BY_SIDE]; /* sums of w * alpha * colour */
};

/* exp(x) of x up to 0, or NaN, to 1e-15; as small as 1e-304 at least. The multiple of log(2) goes
 * into the exponent's bits, the rest into Taylor's series. */
static inline double exp_negative(double x)
{
	static const double shift = 0x1.8p52 + 1023, log2_high = 0x1.62e42feep-1,
	                    log2_low = 0x1.a39ef35793c76p-33;
	const double least = x < -700 ? -700 : x, n = least * M_LOG2E + shift, whole = n - shift;
	const double r = least - whole * log2_high - whole * log2_low;
	uint64_t bits;
	double power, sum = 1.0 / 479001600;

	sum = sum * r + 1.0 / 39916800;
	sum = sum * r + 1.0 / 3628800;
	sum = sum * r + 1.0 / 362880;
	sum = sum * r + 1.0 / 40320;
	sum = sum * r + 1.0 / 5040;
	sum = sum * r + 1.0 / 720;
	sum = sum * r + 1.0 / 120;
	sum = sum * r + 1.0 / 24;
	sum = sum * r + 1.0 / 6;
	sum = sum * r + 0.5;
	sum = sum * r + 1;
	sum = sum * r + 1;
	memcpy(&bits, &n, sizeof bits);
	bits <<= 52;
	memcpy(&power, &bits, sizeof power);
	return sum * power;
}

/* Adds to the sums of each of these pixels the one that is as far from it as `at` from `centre`, in
 * planes. */
VECTORISED static void add_pixels(const struct bilateral *b, const double *const *plane,
                                  size_t centre, size_t at, double d2, size_t count,
                                  struct sums *restrict sums)
{
	const double space = b->op->space * d2, range = b->op->range / (b->full * b->full);
	double w[SIDE_BY_SIDE] = {0};

	for (uint32_t c = 0; c < b->colours; c++)
		for (size_t k = 0; k < count; k++) {
			const double e = plane[c][at + k] - plane[c][centre + k];

			w[k] += e * e;
		}
	for (size_t k = 0; k < count; k++) {
		w[k] = exp_negative(space + range * w[k]);
		sums->weights[k] += w[k];
	}
	for (size_t k = 0; b->alpha_weighted && k < count; k++) {
		w[k] *= plane[b->colours][at + k];
		sums->colour_weights[k] += w[k];
		sums->terms[k] += fabs(w[k]);
	}
	for (uint32_t c = 0; c < b->colours; c++)
		for (size_t k = 0; k < count; k++) {
			const double v = plane[c][at + k], size = fabs(v);

			sums->sum[c][k] += w[k] * v;
			sums->peak[k] = size > sums->peak[k] ? size : sums->peak[k];
		}
}

/* Adds a pixel to the error bound of the means. Let weights w be wrong by a factor of at most f,
 * and samples c by at most s. Then a mean r is off by at most sum(w f s + w (f - 1) |c - r|) /
 * sum(w / f). */
static void doubt_pixel(struct bilateral *b, size_t at, double d2, const double *mean)
{
	double off, e2 = distance(b, at, &off), factor = exp(-b->op->range * off);
	double w = exp(b->op->space * d2 + b->op->range * e2);

	b->weights_min += w / factor;
	for (uint32_t k = 0; k < b->colours; k++)
		b->off[k] += w * factor * b->in->slack[at + k] +
		             w * (factor - 1) * fabs(b->in->value[at + k] - mean[k]);
}

/* Doubts each pixel of the window. */
static void doubt_window(struct bilateral *b, int x, int y, const double *mean)
{
	int r = (int)b->op->radius_x;

	for (int j = -r; j <= r; j++)
		for (int i = -r; i <= r; i++)
			if (i * i + j * j <= r * r)
				doubt_pixel(b, canvas_index(b->in, x + i, y + j), i * i + j * j,
				            mean);
}

/* Around transparent pixels all weights may be tiny: their exponents are large and thus inexact in
 * float32, or kernels skip them. Alphas of both signs may leave little of their sum. If the sum is
 * negative the colour is 0. */
static double alpha_weighted_slack(const struct bilateral *b, double value)
{
	const double sum = b->colour_weights;

	if (!b->in->exact)
		return SLACK_UNLIMITED;
	if (b->terms == 0)
		return 0;
	if (!(fabs(sum) > SMALL_SUM * b->full && fabs(sum) > LEFT * b->terms))
		return SLACK_UNLIMITED;
	if (sum < 0)
		return 0;
	return fmax(0, log(b->full / sum)) * FLOAT_NOISE * b->full +
	       (b->terms / sum - 1) * FLOAT_TOLERANCE * (b->peak + fabs(value));
}

/* sums, k: those of the pixel at x and y. */
static void finish_pixel(struct bilateral pixel, const struct sums *sums, size_t k, int x, int y,
                         double *value, double *slack)
{
	struct bilateral *b = &pixel;

	b->centre = canvas_index(b->in, x, y);
	b->weights = b->colour_weights = b->terms = sums->weights[k];
	if (b->alpha_weighted) {
		b->colour_weights = sums->colour_weights[k];
		b->terms = sums->terms[k];
	}
	b->peak = sums->peak[k];
	for (uint32_t c = 0; c < b->colours; c++) /* or NaN */
		value[c] = b->colour_weights <= 0 ? 0 : sums->sum[c][k] / b->colour_weights;
	if (b->alpha_weighted)
		value[b->colours] = b->colour_weights / b->weights;
	else if (!b->in->exact)
		doubt_window(b, x, y, value);
	for (uint32_t c = 0; c < b->colours; c++)
		slack[c] = b->alpha_weighted ? alpha_weighted_slack(b, value[c])
		           : b->in->exact    ? 0
		                             : b->off[c] / b->weights_min;
	if (b->alpha_weighted)
		slack[b->colours] = b->in->exact ? 0 : SLACK_UNLIMITED;
}

/* The canvas in planes. NULL without memory. */
static double *to_planes(const struct canvas *c, const double *plane[BANDS_MAX])
{
	const size_t size = (size_t)c->at.width * c->at.height;
	double *planes = malloc(size * c->bands * sizeof *planes);

	for (uint32_t b = 0; planes && b < c->bands; b++) {
		plane[b] = planes + b * size;
		for (size_t k = 0; k < size; k++)
			planes[b * size + k] = c->value[k * c->bands + b];
	}
	return planes;
}

enum error bilateral_apply(const struct operation *op, const struct scale *scale,
                           const struct canvas *in, struct canvas *out)
{
	struct bilateral b = {.op = op,
	                      .full = scale->full,
	                      .in = in,
	                      .colours = in->bands - scale->alpha_weighted,
	                      .alpha_weighted = scale->alpha_weighted};
	const int r = (int)op->radius_x;
	const double *plane[BANDS_MAX];
	double *planes = to_planes(in, plane);
	struct sums *sums = malloc(sizeof *sums);
	size_t to = 0;

	for (size_t i = 0, count; planes && sums && to < canvas_samples(out); i += count) {
		const size_t width = out->at.width, left = width - i % width;
		const int x = out->at.x + (int)(i % width), y = out->at.y + (int)(i / width);

		count = left < SIDE_BY_SIDE ? left : SIDE_BY_SIDE;
		memset(sums, 0, sizeof *sums);
		for (int dy = -r; dy <= r; dy++)
			for (int dx = -r; dx <= r; dx++)
				if (dx * dx + dy * dy <= r * r)
					add_pixels(&b, plane, canvas_index(in, x, y) / in->bands,
					           canvas_index(in, x + dx, y + dy) / in->bands,
					           dx * dx + dy * dy, count, sums);
		for (size_t k = 0; k < count; k++, to += out->bands)
			finish_pixel(b, sums, k, x + (int)k, y, &out->value[to], &out->slack[to]);
	}
	free(planes);
	free(sums);
	return planes && sums ? ERR_OK : ERR_MEMORY;
}
