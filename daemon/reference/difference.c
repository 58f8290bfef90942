/* Compares results with the reference. */
#include "reference/difference.h"

#include <math.h>

#include "reference/canvas.h"
#include "reference/rows.h"

/* Some samples side by side; count: of a row's end. */
enum { SAMPLES = 64 };

/* Adds samples of which all are finite and none is a mismatch or circular; else returns false. */
VECTORISED static bool add_right(struct difference *d, double anything, const double *got,
                                 const double *wanted, const float *slack)
{
	double off[SAMPLES], limited[SAMPLES];
	unsigned wrong = 0, beyond_1 = 0;

	for (int k = 0; k < SAMPLES; k++) {
		off[k] = fabs(got[k] - wanted[k]);
		limited[k] = slack[k] < anything ? off[k] : 0;
		wrong += off[k] <= slack[k] ? 0 : 1;
		beyond_1 += off[k] > 1;
	}
	if (wrong)
		return false;
	for (int half = SAMPLES / 2; half; half /= 2)
		for (int k = 0; k < half; k++)
			limited[k] =
			    limited[k] > limited[k + half] ? limited[k] : limited[k + half];
	d->largest = fmax(d->largest, limited[0]);
	d->beyond_1 += beyond_1;
	return true;
}

static void add_sample(struct difference *d, const struct reference *r, double anything, size_t i,
                       double got, double wanted)
{
	const double period = r->type == PIXEL_F32 ? 2 * M_PI : pixel_type_full_scale(r->type);
	const size_t pixel = i / r->bands;
	double off = fabs(got - wanted);

	if (r->circular >> i % r->bands & 1)
		off = fmin(off, fabs(period - off));
	if (!isfinite(got))
		off = INFINITY;
	if (!isfinite(wanted))
		off = 0;
	if (r->slack[i] < anything)
		d->largest = fmax(d->largest, off);
	d->beyond_1 += off > 1;
	if (off <= r->slack[i] || d->mismatches++)
		return;
	d->x = r->window.x0 + (uint32_t)(pixel % r->window.width);
	d->y = r->window.y0 + (uint32_t)(pixel / r->window.width);
	d->band = (uint32_t)(i % r->bands);
	d->got = got;
	d->wanted = wanted;
	d->slack = r->slack[i];
}

void difference_add(struct difference *d, const struct reference *r, const void *pixels,
                    size_t pitch)
{
	const size_t span = (size_t)r->window.width * r->bands, size = pixel_type_size(r->type);
	const double anything =
	    r->type == PIXEL_F32 ? 0.5 * SLACK_UNLIMITED : pixel_type_full_scale(r->type);

	d->samples += span * r->window.height;
	for (size_t y = 0; y < r->window.height; y++)
		for (size_t k = 0, count; k < span; k += count) {
			const size_t i = y * span + k;
			double got[SAMPLES], wanted[SAMPLES];

			count = span - k < SAMPLES ? span - k : SAMPLES;
			rows_load(got, (const uint8_t *)pixels + y * pitch + k * size, r->type,
			          count);
			rows_load(wanted, (const uint8_t *)r->pixels + i * size, r->type, count);
			if (count == SAMPLES && !r->circular &&
			    add_right(d, anything, got, wanted, r->slack + i))
				continue;
			for (size_t at = 0; at < count; at++)
				add_sample(d, r, anything, i + at, got[at], wanted[at]);
		}
}
