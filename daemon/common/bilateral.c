/* The bilateral filter, in double precision. Its slack needs a second pass over the window: what is
 * off in a sample also changes the weights, and by how much that matters depends on the mean. */
#include "common/bilateral.h"

#include <math.h>

/* Sums of weights below this may be 0 in float32. */
static const double FLOAT_SMALLEST = 1e-30;
/* Kernels leave out weights below 2^-100 (and a little above, where they round). That matters only
 * where the weights' sum is small. */
static const double LEAST_WEIGHT = 0x1.1p-100, SMALL_SUM = 1e-20;

/* One pixel of the bilateral filter: sums over its window. */
struct bilateral {
	const struct operation *op;
	double full; /* scale */
	const struct canvas *in;
	uint32_t colours;
	bool weighed;
	size_t centre;
	double weights, colour_weights;   /* sums of w; of w times alpha */
	double sum[BANDS_MAX];            /* of w times alpha times colour */
	double least, least_colour;       /* that the sums of weights may be */
	double off[BANDS_MAX], alpha_off; /* see doubt_pixel() */
};

/* e² of two pixels, and by how much it may be off. */
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

static void add_pixel(struct bilateral *b, size_t at, double d2)
{
	double off, alpha = b->weighed ? b->in->value[at + b->colours] : 1;
	double w = exp(b->op->space * d2 + b->op->range * distance(b, at, &off));

	b->weights += w;
	b->colour_weights += w * alpha;
	for (uint32_t k = 0; k < b->colours; k++)
		b->sum[k] += w * alpha * b->in->value[at + k];
}

/* How far the quotients may be off: with weights u, of which each may be off by v, and samples c by
 * s, a mean r = sum(u c) / sum(u) is off by at most sum((u + v) s + v |c - r|) / sum(u - v). */
static void doubt_pixel(struct bilateral *b, size_t at, double d2, const double *mean)
{
	double off, a = b->weighed ? b->in->value[at + b->colours] : 1;
	double sa = b->weighed ? b->in->slack[at + b->colours] : 0;
	double w = exp(b->op->space * d2 + b->op->range * distance(b, at, &off));
	double more = fmin(w * exp(-b->op->range * off), exp(b->op->space * d2));
	double less = w * exp(b->op->range * off), v = more * (fabs(a) + sa) - w * fabs(a);

	if (w < LEAST_WEIGHT)
		less = 0;
	v = fmax(v, w * fabs(a) - less * (fabs(a) - sa));
	b->least += less;
	b->least_colour += w * a - v;
	for (uint32_t k = 0; k < b->colours; k++)
		b->off[k] += (w * fabs(a) + v) * b->in->slack[at + k] +
		             v * fabs(b->in->value[at + k] - mean[k]);
	b->alpha_off += more * sa + (more - less) * fabs(a - mean[b->colours]);
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

/* Around transparent pixels there may be none but tiny weights, whose exponents are large and so
 * not exact in float32, or which float32 cannot hold at all. */
static double colour_slack(const struct bilateral *b, double off)
{
	double exponent = b->weighed ? fmax(0, log(b->full / b->least_colour)) : 0;

	if (b->least_colour > FLOAT_SMALLEST * b->full)
		return off / b->least_colour + exponent * FLOAT_NOISE * b->full;
	return b->least_colour < 0 || b->colour_weights > 0 ? SLACK_UNLIMITED : 0;
}

static void bilateral_pixel(struct bilateral b, int x, int y, double *value, double *slack)
{
	b.centre = canvas_index(b.in, x, y);
	each_in_window(&b, x, y, NULL);
	for (uint32_t k = 0; k < b.colours; k++)
		value[k] = b.colour_weights <= 0 ? 0 : b.sum[k] / b.colour_weights; /* or NaN */
	if (b.weighed)
		value[b.colours] = b.colour_weights / b.weights;
	if (!b.in->exact || (b.weighed && b.colour_weights < SMALL_SUM * b.full)) {
		double mean[BANDS_MAX + 1] = {0};

		for (uint32_t k = 0; k < b.colours; k++)
			mean[k] = value[k];
		mean[b.colours] = b.weighed ? value[b.colours] : 1;
		each_in_window(&b, x, y, mean);
	} else {
		b.least = b.weights;
		b.least_colour = b.colour_weights;
	}
	for (uint32_t k = 0; k < b.colours; k++)
		slack[k] = colour_slack(&b, b.off[k]);
	if (b.weighed)
		slack[b.colours] = b.alpha_off / b.least;
}

void canvas_bilateral(const struct operation *op, const struct scale *scale, bool weighed,
                      const struct canvas *in, struct canvas *out)
{
	struct bilateral b = {.op = op,
	                      .full = scale->full,
	                      .in = in,
	                      .colours = in->bands - weighed,
	                      .weighed = weighed};
	size_t i = 0;

	for (int y = 0; y < (int)out->at.height; y++)
		for (int x = 0; x < (int)out->at.width; x++, i += out->bands)
			bilateral_pixel(b, out->at.x + x, out->at.y + y, &out->value[i],
			                &out->slack[i]);
}
