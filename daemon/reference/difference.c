/* Compares results with the reference. */
#include "reference/difference.h"

#include <math.h>

#include "reference/canvas.h"

static double difference_of(double got, double wanted, enum pixel_type type, bool circular)
{
	double period = type == PIXEL_F32 ? 2 * M_PI : pixel_type_full_scale(type);
	double d = fabs(got - wanted);

	if (!isfinite(wanted))
		return 0;
	if (!isfinite(got))
		return INFINITY;
	return circular ? fmin(d, fabs(period - d)) : d;
}

static void note_mismatch(struct difference *d, const struct reference *r, size_t i, double got)
{
	size_t pixel = i / r->bands;

	if (d->mismatches++)
		return;
	d->x = r->window.x0 + (uint32_t)(pixel % r->window.width);
	d->y = r->window.y0 + (uint32_t)(pixel / r->window.width);
	d->band = (uint32_t)(i % r->bands);
	d->got = got;
	d->wanted = image_get_sample(r->pixels, i, r->type);
	d->slack = r->slack[i];
}

void difference_add(struct difference *d, const struct reference *r, const void *pixels,
                    size_t pitch)
{
	size_t span = (size_t)r->window.width * r->bands, count = span * r->window.height;

	double anything =
	    r->type == PIXEL_F32 ? 0.5 * SLACK_UNLIMITED : pixel_type_full_scale(r->type);

	d->samples += count;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *row = (const uint8_t *)pixels + i / span * pitch;
		double got = image_get_sample(row, i % span, r->type);
		double off = difference_of(got, image_get_sample(r->pixels, i, r->type), r->type,
		                           r->circular >> i % r->bands & 1);

		if (r->slack[i] < anything)
			d->largest = fmax(d->largest, off);
		d->beyond_1 += off > 1;
		if (off > r->slack[i])
			note_mismatch(d, r, i, got);
	}
}
