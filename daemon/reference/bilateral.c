/* The bilateral filter, in double precision. If its input has slack (after another filter), a
 * second pass over the window computes the result's slack: an error in a sample also changes the
 * weights, and the effect of that depends on the mean. With alpha weights as well, the slack is
 * then unlimited. */
#include "reference/bilateral.h"

#include <math.h>

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
	double sum[BANDS_MAX];          /* sums of w * alpha * colour */
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

static double weight(const struct bilateral *b, size_t at, double d2, double *off)
{
	return exp(b->op->space * d2 + b->op->range * distance(b, at, off));
}

static void add_pixel(struct bilateral *b, size_t at, double d2)
{
	double off, alpha = b->alpha_weighted ? b->in->value[at + b->colours] : 1;
	double w = weight(b, at, d2, &off);

	b->weights += w;
	b->colour_weights += w * alpha;
	b->terms += fabs(w * alpha);
	for (uint32_t k = 0; k < b->colours; k++) {
		b->sum[k] += w * alpha * b->in->value[at + k];
		b->peak = fmax(b->peak, fabs(b->in->value[at + k]));
	}
}

/* Adds a pixel to the error bound of the means. Let weights w be wrong by a factor of at most f,
 * and samples c by at most s. Then a mean r is off by at most sum(w f s + w (f - 1) |c - r|) /
 * sum(w / f). */
static void doubt_pixel(struct bilateral *b, size_t at, double d2, const double *mean)
{
	double off, w = weight(b, at, d2, &off), factor = exp(-b->op->range * off);

	b->weights_min += w / factor;
	for (uint32_t k = 0; k < b->colours; k++)
		b->off[k] += w * factor * b->in->slack[at + k] +
		             w * (factor - 1) * fabs(b->in->value[at + k] - mean[k]);
}

static void each_in_window(struct bilateral *b, int x, int y, const double *mean)
{
	int r = (int)b->op->radius_x;

	for (int j = -r; j <= r; j++)
		for (int i = -r; i <= r; i++) {
			if (i * i + j * j > r * r)
				continue;
			if (mean)
				doubt_pixel(b, canvas_index(b->in, x + i, y + j), i * i + j * j,
				            mean);
			else
				add_pixel(b, canvas_index(b->in, x + i, y + j), i * i + j * j);
		}
}

/* Around transparent pixels all weights may be tiny: their exponents are large and thus inexact in
 * float32, or kernels skip them. Alphas of both signs may leave little of their sum. Where the sum
 * is negative the colour is 0. */
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

static void bilateral_pixel(struct bilateral b, int x, int y, double *value, double *slack)
{
	b.centre = canvas_index(b.in, x, y);
	each_in_window(&b, x, y, NULL);
	for (uint32_t k = 0; k < b.colours; k++)
		value[k] = b.colour_weights <= 0 ? 0 : b.sum[k] / b.colour_weights; /* or NaN */
	if (b.alpha_weighted)
		value[b.colours] = b.colour_weights / b.weights;
	else if (!b.in->exact)
		each_in_window(&b, x, y, value);
	for (uint32_t k = 0; k < b.colours; k++)
		slack[k] = b.alpha_weighted ? alpha_weighted_slack(&b, value[k])
		           : b.in->exact    ? 0
		                            : b.off[k] / b.weights_min;
	if (b.alpha_weighted)
		slack[b.colours] = b.in->exact ? 0 : SLACK_UNLIMITED;
}

void bilateral_apply(const struct operation *op, double full, bool alpha_weighted,
                     const struct canvas *in, struct canvas *out)
{
	struct bilateral b = {.op = op,
	                      .full = full,
	                      .in = in,
	                      .colours = in->bands - alpha_weighted,
	                      .alpha_weighted = alpha_weighted};
	size_t i = 0;

	for (int y = 0; y < (int)out->at.height; y++)
		for (int x = 0; x < (int)out->at.width; x++, i += out->bands)
			bilateral_pixel(b, out->at.x + x, out->at.y + y, &out->value[i],
			                &out->slack[i]);
}
