/* The reference is the plain definition in double precision, reading clamped into the source ROI.
 */
#include "classic_trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 4096 };

static const double FLOAT_TOLERANCE = 1e-5;

static const double full_scale[PIXEL_TYPES] = {
    [PIXEL_U8] = 255, [PIXEL_U16] = 65535, [PIXEL_F32] = 1};

uint64_t trial_seed = 1;

uint32_t random_below(uint32_t n)
{
	trial_seed = trial_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((trial_seed >> 33) % n);
}

/* From 0 to 1. */
static double random_share(void)
{
	return random_below(65536) / 65535.0;
}

size_t trial_sample_size(const struct trial *t)
{
	return t->type == PIXEL_U8 ? 1 : t->type == PIXEL_U16 ? 2 : 4;
}

struct matrix matrix_new(int width, int height, size_t pixel, size_t sample, int poison)
{
	struct matrix m = {.width = width, .height = height, .pixel = pixel};

	m.pitch = (size_t)width * pixel + random_below(5) * sample;
	m.size = m.pitch * (size_t)height + 2 * GUARD;
	m.bytes = malloc(m.size);
	if (!m.bytes)
		abort();
	memset(m.bytes, poison, m.size);
	return m;
}

size_t matrix_offset(const struct matrix *m, int x, int y)
{
	return GUARD + (size_t)y * m->pitch + (size_t)x * m->pixel;
}

static bool all_poison(const struct matrix *m, size_t from, size_t to, int poison)
{
	for (size_t i = from; i < to; i++)
		if (m->bytes[i] != poison)
			return false;
	return true;
}

bool matrix_intact(const struct matrix *m, int x, int y, int width, int height, int poison)
{
	size_t from = 0;

	for (int r = 0; r < height; r++) {
		if (!all_poison(m, from, matrix_offset(m, x, y + r), poison))
			return false;
		from = matrix_offset(m, x + width, y + r);
	}
	return all_poison(m, from, m->size, poison);
}

static double sample_read(const struct trial *t, const struct matrix *m, size_t offset)
{
	uint16_t u16;
	float f32;

	switch (t->type) {
	case PIXEL_U8:
		return m->bytes[offset];
	case PIXEL_U16:
		memcpy(&u16, m->bytes + offset, sizeof u16);
		return u16;
	default:
		memcpy(&f32, m->bytes + offset, sizeof f32);
		return f32;
	}
}

static void sample_write(const struct trial *t, struct matrix *m, size_t offset, double value)
{
	uint16_t u16 = (uint16_t)value;
	float f32 = (float)value;

	switch (t->type) {
	case PIXEL_U8:
		m->bytes[offset] = (uint8_t)value;
		break;
	case PIXEL_U16:
		memcpy(m->bytes + offset, &u16, sizeof u16);
		break;
	default:
		memcpy(m->bytes + offset, &f32, sizeof f32);
	}
}

/* Places the region in both matrices, whose size comes back. */
static void place(struct trial *t, int width, int height, struct rect *source, struct rect *target)
{
	int left = 0, top = 0, right = 0, bottom = 0; /* extent of the ROI beyond the region */

	if (t->layout == LAYOUT_PADDED) {
		left = right = t->rx;
		top = bottom = t->ry;
	} else if (t->layout == LAYOUT_STRIP) {
		left = (int)random_below(40);
		top = (int)random_below(40);
		right = random_below(2) ? 40 : (int)random_below(4);
		bottom = random_below(2) ? 40 : (int)random_below(4);
	}
	t->roi = (struct rect){0, 0, left + width + right, top + height + bottom};
	t->to = (struct rect){0, 0, width, height};
	*source = t->roi;
	*target = t->to;
	if (t->layout == LAYOUT_ROI) {
		source->width += (int)random_below(20);
		source->height += (int)random_below(20);
		target->width += (int)random_below(20);
		target->height += (int)random_below(20);
		/* the first and the last places as often as all others */
		t->roi.x = (int)random_below(3) * (source->width - t->roi.width) / 2;
		t->roi.y = (int)random_below(3) * (source->height - t->roi.height) / 2;
		t->to.x = (int)random_below(3) * (target->width - width) / 2;
		t->to.y = (int)random_below(3) * (target->height - height) / 2;
	}
	t->from = (struct rect){t->roi.x + left, t->roi.y + top, width, height};
}

/* Random samples; now and then flat areas at both ends of the range, and among floats a few that
 * are not numbers: they must not spread further than the window. */
static void fill(struct trial *t)
{
	size_t count = (size_t)t->roi.width * (size_t)t->roi.height * (size_t)t->bands;
	size_t row = (size_t)t->roi.width * (size_t)t->bands;
	bool flat = random_below(4) == 0, spoilt = t->type == PIXEL_F32 && random_below(3) == 0;

	t->pixels = malloc(count * sizeof *t->pixels);
	if (!t->pixels)
		abort();
	for (size_t i = 0; i < count; i++) {
		double value = (flat ? (double)(i / 37 % 2) : random_share()) * full_scale[t->type];
		size_t offset = matrix_offset(&t->source, t->roi.x, t->roi.y + (int)(i / row)) +
		                i % row * trial_sample_size(t);

		if (spoilt && random_below((uint32_t)count) < 2)
			value = random_below(2) ? NAN : INFINITY;
		sample_write(t, &t->source, offset, value);
		t->pixels[i] = sample_read(t, &t->source, offset);
	}
}

/* Positive weights of sum 1, or any and an offset. */
static void choose_weights(struct trial *t)
{
	int first = 2 * t->rx + 1, second = 2 * t->ry + 1;
	int parts = t->operation == SEPARABLE ? 2 : 1;
	int counts[2] = {parts == 2 ? first : first * second, second};
	bool smooth = random_below(2);
	float *weights = t->weights;

	t->offset = smooth ? 0 : (float)(random_share() * full_scale[t->type] / 2);
	t->gain = 1;
	for (int part = 0; part < parts; part++) {
		double sum = 0;

		for (int i = 0; i < counts[part]; i++) {
			weights[i] = (float)random_share() - (smooth ? 0 : 0.4F);
			sum += fabsf(weights[i]);
		}
		for (int i = 0; i < counts[part]; i++)
			weights[i] = sum > 0 ? (float)(weights[i] / sum * (smooth ? 1 : 1.5)) : 1;
		t->gain *= smooth ? 1 : 1.5;
		weights += counts[part];
	}
	t->gain += t->offset / full_scale[t->type];
}

static void choose_bilateral(struct trial *t)
{
	const double log2_e = 1.4426950408889634;
	double sigma_space = 0.5 + 3 * random_share();
	double sigma_range = (0.02 + random_share()) * full_scale[t->type];

	t->space = (float)(-log2_e / (2 * sigma_space * sigma_space));
	t->range = (float)(-log2_e / (2 * sigma_range * sigma_range));
	t->gain = 1;
}

void trial_init(struct trial *t, int width, int height)
{
	size_t sample = trial_sample_size(t), pixel = sample * (size_t)t->bands;
	struct rect source, target;

	place(t, width, height, &source, &target);
	t->source = matrix_new(source.width, source.height, pixel, sample, POISON_SOURCE);
	t->target = matrix_new(target.width, target.height, pixel, sample, POISON_TARGET);
	fill(t);
	if (t->operation == BILATERAL)
		choose_bilateral(t);
	else
		choose_weights(t);
}

void trial_fini(struct trial *t)
{
	free(t->source.bytes);
	free(t->target.bytes);
	free(t->pixels);
}

static int clamp(int i, int n)
{
	return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Returns the pixel at a place of the source matrix, or the ROI's nearest. */
static const double *pixel_at(const struct trial *t, int x, int y)
{
	size_t row = (size_t)clamp(y - t->roi.y, t->roi.height);
	size_t column = (size_t)clamp(x - t->roi.x, t->roi.width);

	return t->pixels + (row * (size_t)t->roi.width + column) * (size_t)t->bands;
}

static double reference_sum(const struct trial *t, int x, int y, int band)
{
	const float *column = t->weights + 2 * t->rx + 1;
	double sum = t->offset;

	for (int j = 0; j <= 2 * t->ry; j++)
		for (int i = 0; i <= 2 * t->rx; i++) {
			double weight = t->operation == SEPARABLE
			                    ? (double)t->weights[i] * column[j]
			                    : t->weights[j * (2 * t->rx + 1) + i];

			sum += weight * pixel_at(t, x + i - t->rx, y + j - t->ry)[band];
		}
	return sum;
}

static double reference_gradient(const struct trial *t, int x, int y, int band)
{
	double gx = 0, gy = 0;

	for (int i = -1; i <= 1; i++) {
		int smooth = i ? 1 : 2;

		gx += smooth * (pixel_at(t, x + 1, y + i)[band] - pixel_at(t, x - 1, y + i)[band]);
		gy += smooth * (pixel_at(t, x + i, y + 1)[band] - pixel_at(t, x + i, y - 1)[band]);
	}
	return sqrt(gx * gx + gy * gy);
}

static double reference_bilateral(const struct trial *t, int x, int y, int band)
{
	const double *centre = pixel_at(t, x, y);
	double sum = 0, weights = 0;

	for (int j = -t->rx; j <= t->rx; j++)
		for (int i = -t->rx; i <= t->rx; i++) {
			const double *pixel = pixel_at(t, x + i, y + j);
			double e2 = 0, weight;

			if (i * i + j * j > t->rx * t->rx)
				continue;
			for (int b = 0; b < t->bands; b++)
				e2 += (pixel[b] - centre[b]) * (pixel[b] - centre[b]);
			weight = exp2((double)t->space * (i * i + j * j) + (double)t->range * e2);
			sum += weight * pixel[band];
			weights += weight;
		}
	return sum / weights;
}

static double reference(const struct trial *t, int x, int y, int band)
{
	if (t->operation == GRADIENT)
		return reference_gradient(t, x, y, band);
	if (t->operation == BILATERAL)
		return reference_bilateral(t, x, y, band);
	return reference_sum(t, x, y, band);
}

/* Floats have no range to stay in; NaN need only be NaN. */
static bool close_enough(const struct trial *t, double got, double wanted)
{
	if (t->type == PIXEL_F32)
		return isfinite(wanted) ? fabs(got - wanted) <= FLOAT_TOLERANCE * t->gain
		                        : !isfinite(got);
	return fabs(got - rint(fmin(fmax(wanted, 0), full_scale[t->type]))) <= 1;
}

void trial_report(const struct trial *t, const char *what)
{
	static const char *const types[PIXEL_TYPES] = {
	    [PIXEL_U8] = "u8", [PIXEL_U16] = "u16", [PIXEL_F32] = "f32"};
	static const char *const layouts[LAYOUTS] = {"whole", "padded", "ROI", "strip"};

	printf("# %s, %d bands, radius %d x %d, %s, %d x %d at %d,%d of ROI %d,%d %d x %d, to "
	       "%d,%d: %s\n",
	       types[t->type], t->bands, t->rx, t->ry, layouts[t->layout], t->from.width,
	       t->from.height, t->from.x, t->from.y, t->roi.x, t->roi.y, t->roi.width,
	       t->roi.height, t->to.x, t->to.y, what);
}

bool trial_check(const struct trial *t)
{
	char what[128];

	if (!matrix_intact(&t->target, t->to.x, t->to.y, t->to.width, t->to.height,
	                   POISON_TARGET)) {
		trial_report(t, "bytes outside the target ROI were written");
		return false;
	}
	for (int i = 0; i < t->to.width * t->to.height * t->bands; i++) {
		int band = i % t->bands, x = i / t->bands % t->to.width;
		int y = i / t->bands / t->to.width;
		double wanted = reference(t, t->from.x + x, t->from.y + y, band);
		double got = sample_read(t, &t->target,
		                         matrix_offset(&t->target, t->to.x + x, t->to.y + y) +
		                             (size_t)band * trial_sample_size(t));

		if (!close_enough(t, got, wanted)) {
			snprintf(what, sizeof what, "%.9g instead of %.9g at %d,%d band %d", got,
			         wanted, x, y, band);
			trial_report(t, what);
			return false;
		}
	}
	return true;
}
