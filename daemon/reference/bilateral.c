/* The bilateral filter, in double precision. If its input has slack (after another filter), a
 * second pass over the window computes the result's slack: an error in a sample also changes the
 * weights, and the effect of that depends on the mean. With alpha weights as well, the slack is
 * then unlimited. */
#include "reference/apply.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Kernels skip weights below 2^-100. That matters only where the sum of the weights is small. */
static const double SMALL_SUM = 1e-20;

/* A sum of terms of both signs counts as known if this share of their magnitudes is left. */
static const double LEFT = 1e-4;

/* Pixels of a row that are computed together. */
enum { SIDE_BY_SIDE = 64 };

/* Sums over each pixel's window. */
struct sums {
	double weights[SIDE_BY_SIDE], colour_weights[SIDE_BY_SIDE]; /* w, and w * alpha */
	double terms[SIDE_BY_SIDE], peak[SIDE_BY_SIDE]; /* |w * alpha|; largest magnitude */
	double sum[BANDS_MAX][SIDE_BY_SIDE];            /* w * alpha * colour */
};

/* Returns exp(x) for x up to 0, or NaN, to 1e-15; the result is at least 1e-304. The multiple of
 * log(2) goes into the exponent's bits, the rest into Taylor's series. */
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

/* Adds to the sums of each of these pixels the pixel that is as far from it as `at` from `centre`,
 * in planes. */
VECTORISED static void add_pixels(const struct operation *op, const struct scale *scale,
                                  uint32_t colours, const double *const *plane, size_t centre,
                                  size_t at, double d2, size_t count, struct sums *restrict sums)
{
	const double space = op->space * d2, range = op->range / (scale->full * scale->full);
	double w[SIDE_BY_SIDE] = {0};

	for (uint32_t c = 0; c < colours; c++)
		for (size_t k = 0; k < count; k++) {
			const double e = plane[c][at + k] - plane[c][centre + k];

			w[k] += e * e;
		}
	for (size_t k = 0; k < count; k++) {
		w[k] = exp_negative(space + range * w[k]);
		sums->weights[k] += w[k];
	}
	for (size_t k = 0; scale->alpha_weighted && k < count; k++) {
		w[k] *= plane[colours][at + k];
		sums->colour_weights[k] += w[k];
		sums->terms[k] += fabs(w[k]);
	}
	for (uint32_t c = 0; c < colours; c++)
		for (size_t k = 0; k < count; k++) {
			const double v = plane[c][at + k], size = fabs(v);

			sums->sum[c][k] += w[k] * v;
			sums->peak[k] = size > sums->peak[k] ? size : sums->peak[k];
		}
}

/* Finds the error bounds of the means at a pixel. Let weights w be wrong by a factor of at most f,
 * and samples c by at most s. Then a mean r is off by at most sum(w f s + w (f - 1) |c - r|) /
 * sum(w / f). */
static void doubt(const struct operation *op, double full, const struct canvas *in, int x, int y,
                  const double *mean, double *slack)
{
	const size_t centre = canvas_index(in, x, y);
	const int r = (int)op->radius_x;
	double weights = 0, off[BANDS_MAX] = {0};

	for (int j = -r; j <= r; j++)
		for (int i = -r; i <= r; i++) {
			const size_t at = canvas_index(in, x + i, y + j);
			double e2 = 0, e2_off = 0, factor, w; /* the squared distance, its error */

			if (i * i + j * j > r * r)
				continue;
			for (uint32_t k = 0; k < in->bands; k++) {
				double e = (in->value[at + k] - in->value[centre + k]) / full;
				double s = (in->slack[at + k] + in->slack[centre + k]) / full;

				e2 += e * e;
				e2_off += 2 * fabs(e) * s + s * s;
			}
			factor = exp(-op->range * e2_off);
			w = exp(op->space * (i * i + j * j) + op->range * e2);
			weights += w / factor;
			for (uint32_t k = 0; k < in->bands; k++)
				off[k] += w * factor * in->slack[at + k] +
				          w * (factor - 1) * fabs(in->value[at + k] - mean[k]);
		}
	for (uint32_t k = 0; k < in->bands; k++)
		slack[k] = off[k] / weights;
}

/* Around transparent pixels all weights may be tiny: their exponents are large and thus inexact in
 * float32, or kernels skip them. Alphas of both signs may leave little of their sum. If the sum is
 * negative the colour is 0. */
static double alpha_weighted_slack(double full, const struct sums *sums, size_t k, double value)
{
	const double sum = sums->colour_weights[k], terms = sums->terms[k];

	if (terms == 0)
		return 0;
	if (!(fabs(sum) > SMALL_SUM * full && fabs(sum) > LEFT * terms))
		return SLACK_UNLIMITED;
	if (sum < 0)
		return 0;
	return fmax(0, log(full / sum)) * FLOAT_NOISE * full +
	       (terms / sum - 1) * FLOAT_TOLERANCE * (sums->peak[k] + fabs(value));
}

bool bilateral_apply(const struct operation *op, const struct scale *scale, const struct canvas *in,
                     struct canvas *out)
{
	const uint32_t colours = in->bands - scale->alpha_weighted;
	const int r = (int)op->radius_x;
	const size_t size = (size_t)in->at.width * in->at.height;
	const double *plane[BANDS_MAX];
	double *planes = malloc(size * in->bands * sizeof *planes);
	struct sums *sums = malloc(sizeof *sums);
	size_t to = 0;

	for (uint32_t b = 0; planes && b < in->bands; b++) {
		plane[b] = planes + b * size;
		for (size_t k = 0; k < size; k++)
			planes[b * size + k] = in->value[k * in->bands + b];
	}
	for (size_t i = 0, count; planes && sums && to < canvas_samples(out); i += count) {
		const size_t width = out->at.width, left = width - i % width;
		const int x = out->at.x + (int)(i % width), y = out->at.y + (int)(i / width);

		count = left < SIDE_BY_SIDE ? left : SIDE_BY_SIDE;
		memset(sums, 0, sizeof *sums);
		for (int dy = -r; dy <= r; dy++)
			for (int dx = -r; dx <= r; dx++)
				if (dx * dx + dy * dy <= r * r)
					add_pixels(op, scale, colours, plane,
					           canvas_index(in, x, y) / in->bands,
					           canvas_index(in, x + dx, y + dy) / in->bands,
					           dx * dx + dy * dy, count, sums);
		for (size_t k = 0; k < count; k++, to += out->bands) {
			const double *weights =
			    scale->alpha_weighted ? sums->colour_weights : sums->weights;
			double *value = &out->value[to], *slack = &out->slack[to];

			for (uint32_t c = 0; c < colours; c++) /* or NaN */
				value[c] = weights[k] <= 0 ? 0 : sums->sum[c][k] / weights[k];
			if (scale->alpha_weighted)
				value[colours] = weights[k] / sums->weights[k];
			for (uint32_t c = 0; scale->alpha_weighted && c < out->bands; c++)
				slack[c] = !in->exact    ? SLACK_UNLIMITED
				           : c < colours ? alpha_weighted_slack(scale->full, sums,
				                                                k, value[c])
				                         : 0;
			if (!scale->alpha_weighted && !in->exact)
				doubt(op, scale->full, in, x + (int)k, y, value, slack);
		}
	}
	free(planes);
	free(sums);
	return planes && sums;
}
