/* First computes the gradient of each pixel in question and of its neighbours, then decides which
 * of them are maxima across the edge. Gradients of integers are exact, and so is each decision;
 * otherwise a decision counts only where it stays the same within the gradients' errors. */
#include "reference/apply.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* tan(22.5°) as OpenCV has it. */
static const double TAN = 13573.0 / 32768;

struct slope {
	double x, y, length;
	double off;  /* maximum error of each */
	bool turned; /* another band's gradient may be as steep, with another direction */
};

enum fate { NOT, PERHAPS, CERTAINLY };

/* The gradient of the sample at an index, of rows that are `span` samples apart. */
static struct slope slope_at(bool whole, const struct canvas *in, size_t at)
{
	const size_t span = (size_t)in->at.width * in->bands;
	struct slope s = {0};
	double largest = 0;

	for (int j = -1; j <= 1; j++)
		for (int i = -1; i <= 1; i++) {
			const size_t k = (size_t)((ptrdiff_t)at + j * (ptrdiff_t)span +
			                          i * (ptrdiff_t)in->bands);
			const double v = in->value[k];
			const int wx = i * (2 - abs(j)), wy = j * (2 - abs(i));

			if (wx) /* 0 * infinity is none */
				s.x += wx * v;
			if (wy)
				s.y += wy * v;
			if (wx || wy) {
				s.off += fmax(abs(wx), abs(wy)) * in->slack[k];
				largest = fmax(largest, fabs(v));
			}
		}
	s.length = sqrt(s.x * s.x + s.y * s.y); /* squares of floats do not overflow */
	s.off *= sqrt(2);
	if (!whole)
		s.off += 16 * FLOAT_NOISE * largest;
	if (!(16 * largest <= FLT_MAX))
		s.length = NAN;
	return s;
}

/* The steepest of all bands. */
static struct slope steepest_at(bool whole, const struct canvas *in, size_t at)
{
	struct slope best = slope_at(whole, in, at);

	for (uint32_t b = 1; b < in->bands; b++) {
		struct slope s = slope_at(whole, in, at + b);
		const double off = s.off + best.off, largest = fmax(s.off, best.off);
		const bool close = off > 0 && fabs(s.length - best.length) <= off;

		s.turned = close;
		best.turned |= close;
		if (isnan(s.length) || s.length > best.length)
			best = s;
		if (isnan(best.length))
			break;
		if (close)
			best.off = largest;
	}
	return best;
}

/* Tells whether a is above b, or (even) not below it. */
static enum fate is_above(double a, double b, double off, bool even)
{
	if (off > 0 && fabs(a - b) <= off)
		return PERHAPS;
	return a > b || (even && a == b) ? CERTAINLY : NOT;
}

static enum fate both(enum fate a, enum fate b)
{
	return a < b ? a : b;
}

/* Tells whether a length is above those of two neighbours. share: of the errors that counts. */
static enum fate is_peak_among(const struct slope *s, const struct slope *first,
                               const struct slope *second, double share, bool even)
{
	return both(is_above(s->length, first->length, share * (s->off + first->off), false),
	            is_above(s->length, second->length, share * (s->off + second->off), even));
}

/* Tells whether a length is a maximum across the edge; rows of slopes are `width` apart. */
static enum fate is_peak(const struct slope *s, ptrdiff_t width, double share)
{
	const double ax = fabs(s->x), ay = fabs(s->y), off = share * 4 * s->off;
	const enum fate flat = is_above(ax * TAN, ay, off, false);
	const enum fate steep = is_above(ay - 2 * ax, ax * TAN, off, false);
	const bool rising = (s->x < 0) != (s->y < 0);

	if (flat == PERHAPS || steep == PERHAPS || (share > 0 && s->turned) ||
	    (off > 0 && flat == NOT && steep == NOT && fmin(ax, ay) <= off))
		return PERHAPS;
	if (flat)
		return is_peak_among(s, s - 1, s + 1, share, true);
	if (steep)
		return is_peak_among(s, s - width, s + width, share, true);
	return rising ? is_peak_among(s, s - width + 1, s + width - 1, share, false)
	              : is_peak_among(s, s - width - 1, s + width + 1, share, false);
}

bool canny_apply(const struct operation *op, const struct scale *scale, const struct canvas *in,
                 struct canvas *out)
{
	const size_t width = out->at.width + 2, height = out->at.height + 2;
	const double low = op->low * scale->full, high = op->high * scale->full;
	struct slope *slopes = malloc(width * height * sizeof *slopes);

	if (!slopes)
		return false;
	for (size_t i = 0; i < width * height; i++)
		slopes[i] = steepest_at(scale->whole, in,
		                        canvas_index(in, out->at.x - 1 + (int)(i % width),
		                                     out->at.y - 1 + (int)(i / width)));
	for (size_t i = 0; i < canvas_samples(out); i++) {
		const size_t pixel = i / out->bands, x = pixel % out->at.width + 1,
		             y = pixel / out->at.width + 1;
		const struct slope *s = &slopes[y * width + x];
		const enum fate some =
		    both(is_peak(s, (ptrdiff_t)width, 1), is_above(s->length, low, s->off, false));
		const enum fate sure = is_above(s->length, high, s->off, false);
		const bool is_open = some == PERHAPS || (some && sure == PERHAPS);

		out->value[i] = 0;
		if (is_peak(s, (ptrdiff_t)width, 0) && s->length > low)
			out->value[i] = s->length > high ? scale->full : scale->full / 2;
		out->slack[i] = is_open ? scale->full : 0;
		/* If a length or one beside it is NaN, a float may be anything. */
		for (size_t k = 0; k < 9; k++)
			if (isnan(slopes[(y + k / 3 - 1) * width + x + k % 3 - 1].length))
				out->value[i] = NAN;
	}
	free(slopes);
	return true;
}
