/* The arithmetic of the lattice.
 *
 * The spline is SMOOTHS running means of `stride` pixels, one after another (a discrete B-spline).
 * Its spectrum, (sin(pi f s) / (s sin(pi f)))^SMOOTHS, has a zero of that order at every multiple
 * of 1/s. The lattice aliases the frequencies near these multiples to low ones; the zeros suppress
 * them, so a short spline suffices. The spline also attenuates low frequencies, by a known factor,
 * which the filter between the points corrects: its spectrum is the Gaussian's divided by the
 * square of the spline's. */
#include "filters/lattice.h"

#include <math.h>
#include <string.h>

enum { SMOOTHS = 6, FREQUENCIES = 512 };

/* The radius at which the filter on the lattice is cut off, in its standard deviations. */
static const double CUT = 4.65;

struct lattice lattice_for(double sigma)
{
	struct lattice l = {0};
	double points;
	uint32_t spare;

	if (sigma <= LATTICE_SIGMA)
		return l;
	/* At least 2.6 points per standard deviation, or the lattice aliases too much; not many
	 * more, so that filtering on the lattice costs no more than the rest. */
	l.stride = sigma <= 12 ? 3 : sigma <= 30 ? 4 : sigma <= 50 ? 5 : sigma <= 80 ? 6 : 8;
	l.half = SMOOTHS * (l.stride - 1) / 2;
	l.taps = (2 * l.half + l.stride) / l.stride;
	/* All pixels are made from the same number of points, some of them with weight 0. */
	spare = l.taps * l.stride - (2 * l.half + 1);
	l.lead = spare / 2;
	/* The variance of both splines, in points, is (stride² - 1) / stride². */
	points = sigma / l.stride;
	points = sqrt(points * points - 1 + 1.0 / (l.stride * l.stride));
	l.radius = (uint32_t)ceil(CUT * points);
	l.reach = l.radius * l.stride + 2 * l.half + spare - l.lead;
	return l;
}

void lattice_spline(const struct lattice *l, double *spline)
{
	double from[LATTICE_SPLINE_MAX];

	memset(spline, 0, (2 * l->half + 1) * sizeof *spline);
	spline[0] = 1;
	for (uint32_t n = 1; n <= SMOOTHS; n++) {
		memcpy(from, spline, (2 * l->half + 1) * sizeof *spline);
		for (uint32_t i = 0; i <= n * (l->stride - 1); i++) {
			spline[i] = 0;
			for (uint32_t k = 0; k < l->stride && k <= i; k++)
				spline[i] += from[i - k] / l->stride;
		}
	}
}

void lattice_filter(const struct lattice *l, double sigma, double *filter)
{
	const double s = l->stride, points = sigma / s;
	double sum = 0;

	memset(filter, 0, (2 * l->radius + 1) * sizeof *filter);
	for (int i = 0; i < FREQUENCIES; i++) {
		double u = (double)i / FREQUENCIES - 0.5, angle = M_PI * u;
		double mean = u == 0 ? 1 : sin(angle) / (s * sin(angle / s));
		double wanted = exp(-2 * angle * angle * points * points) / pow(mean, 2 * SMOOTHS);

		for (uint32_t k = 0; k <= 2 * l->radius; k++)
			filter[k] += wanted * cos(2 * angle * ((double)k - l->radius));
	}
	for (uint32_t k = 0; k <= 2 * l->radius; k++)
		sum += filter[k];
	for (uint32_t k = 0; k <= 2 * l->radius; k++)
		filter[k] /= sum;
}

void lattice_grow(const struct lattice *l, double weight[LATTICE_TAPS_MAX][LATTICE_STRIDE_MAX])
{
	double spline[LATTICE_SPLINE_MAX];
	const int size = 2 * (int)l->half + 1;

	memset(weight, 0, sizeof(double[LATTICE_TAPS_MAX][LATTICE_STRIDE_MAX]));
	lattice_spline(l, spline);
	for (int tap = 0; tap < (int)l->taps; tap++)
		for (int phase = 0; phase < (int)l->stride; phase++) {
			const int i =
			    ((int)l->taps - 1 - tap) * (int)l->stride + phase - (int)l->lead;

			if (i >= 0 && i < size)
				weight[tap][phase] = spline[i] * l->stride;
		}
}

struct lattice_span lattice_span(const struct lattice *l, int32_t first_pixel, uint32_t pixels)
{
	const int32_t s = (int32_t)l->stride;
	const int32_t reach = (int32_t)(l->taps * l->stride) - (int32_t)(l->half + l->lead) - 1;
	/* The first of the first pixel's points is at this pixel or up to s - 1 before it. */
	const int32_t latest = first_pixel - reach + s - 1;
	const int32_t first = latest / s - (latest % s < 0);
	const uint32_t phase = (uint32_t)(latest - first * s);

	return (struct lattice_span){first, (pixels - 1 + phase) / l->stride + l->taps, phase};
}
