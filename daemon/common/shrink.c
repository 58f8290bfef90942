/* A point is a sum over the pixels that the spline reaches, so it is linear in them; and so are all
 * border rules but `constant`, whose pixels are subtracted everywhere first, and added to the
 * points at the end, as all weights sum to 1. For each axis, what a pixel counts for a point is
 * added up over all places, in the image and outside, that take their value from it. These weights
 * lie in runs of pixels one after another; nothing with weight 0 is touched, since 0 times NaN is
 * NaN.
 *
 * A row is first shrunk across, and then added to those points down that it counts for. So memory
 * is that of the points. Points that only the filter between them reads lie around those that
 * pixels are made from, until shrink_end().
 *
 * Points whose pixels all lie inside the image share one run of weights, the spline. The others are
 * few, at most those around and some more at each end, however large the image is. */
#include "common/shrink.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "border.h"

/* Pixels one after another, and the first of their weights. */
struct run {
	uint32_t first, count;
	size_t weights;
};

/* A window, of which a border rule makes a part of the image, or both of its ends. */
enum { RUNS_MAX = 2 };

/* Products that are summed side by side, so that compilers make vectors of them: a multiple of all
 * numbers of bands. */
enum { LANES = 12 };

struct axis {
	uint32_t points;             /* with those around */
	uint32_t made;               /* without: from the first on, at the end */
	uint32_t radius;             /* of the filter between */
	uint32_t inner, inner_end;   /* points that have the spline as it is */
	struct run (*run)[RUNS_MAX]; /* of each point; count 0: no more */
	double *weight, *filter;
	size_t used;    /* of `weight` */
	uint32_t times; /* that each weight stands there: for every band of a pixel, or once */
};

struct shrink {
	struct image image;
	enum shrink_form form;
	struct axis axis[GRID_AXES];
	double outside[BANDS_MAX]; /* in its form */
	double *row;               /* of pixels */
	double *across;            /* of points */
	double *points;            /* row after row */
	uint32_t y;
	uint32_t near; /* the first point inside, down, that this row or later ones count for */
};

enum shrink_form shrink_form(const struct image *image, enum channels channels)
{
	if (image->bands - image->alpha == 3 &&
	    (channels == CHANNELS_LUMA || channels == CHANNELS_CHROMA))
		return SHRINK_YCC;
	return image->alpha && (channels == CHANNELS_ALL || channels == CHANNELS_COLOR)
	           ? SHRINK_WEIGHTED
	           : SHRINK_PLAIN;
}

/* The pixel that a place takes its value from; -1: none. */
static int source_of(int place, uint32_t pixels, enum border border)
{
	if (border == BORDER_CONSTANT && (place < 0 || place >= (int)pixels))
		return -1;
	return border_map(
	    place, (int)pixels,
	    (int)(border == BORDER_CROP || border == BORDER_CONSTANT ? BORDER_REPLICATE : border));
}

static void put_weight(struct axis *a, double weight)
{
	for (uint32_t i = 0; i < a->times; i++)
		a->weight[a->used++] = weight;
}

/* Moves the weights of the pixels from `first` to `last` to the runs of a point. */
static void take_runs(struct axis *a, double *dense, uint32_t first, uint32_t last,
                      struct run run[RUNS_MAX])
{
	int n = -1;
	bool in_run = false;

	for (uint32_t x = first; x <= last; x++) {
		const double weight = dense[x];

		if (weight > 0) {
			if (!in_run)
				run[++n] = (struct run){x, 0, a->used};
			assert(n < RUNS_MAX);
			run[n].count++;
			put_weight(a, weight);
			dense[x] = 0;
		}
		in_run = weight > 0;
	}
}

/* Makes the weights of a point near an end, which is at this place. dense: of all pixels, 0 but
 * while a point is made. */
static void weigh(struct axis *a, const double *spline, int half, int place, uint32_t pixels,
                  enum border border, double *dense, struct run run[RUNS_MAX])
{
	uint32_t first = pixels, last = 0;

	for (int t = -half; t <= half; t++) {
		const int from = source_of(place + t, pixels, border);

		if (from < 0)
			continue;
		dense[from] += spline[t + half];
		first = (uint32_t)from < first ? (uint32_t)from : first;
		last = (uint32_t)from > last ? (uint32_t)from : last;
	}
	if (first < pixels)
		take_runs(a, dense, first, last, run);
}

/* Makes the runs of all points; place: of the first. */
static void make_runs(struct axis *a, const struct lattice *l, int place, uint32_t pixels,
                      enum border border, double *dense)
{
	double spline[GRID_SPLINE_MAX];
	const int half = (int)l->half;

	lattice_spline(l, spline);
	for (int i = 0; i <= 2 * half; i++)
		put_weight(a, spline[i]);
	for (uint32_t i = 0; i < a->points; i++, place += (int)l->stride) {
		if (place < half || place + half >= (int)pixels) {
			weigh(a, spline, half, place, pixels, border, dense, a->run[i]);
			continue;
		}
		if (!a->inner_end)
			a->inner = i;
		a->inner_end = i + 1;
		a->run[i][0] = (struct run){(uint32_t)(place - half), 2 * l->half + 1, 0};
	}
}

/* How many points from this place on have pixels that are not all inside. */
static uint32_t count_ends(const struct axis *a, const struct lattice *l, int place,
                           uint32_t pixels)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < a->points; i++, place += (int)l->stride)
		count += place < (int)l->half || place + (int)l->half >= (int)pixels;
	return count;
}

static enum error axis_init(struct axis *a, double sigma, const struct grid_axis *g,
                            uint32_t pixels, enum border border, uint32_t times)
{
	const struct lattice *l = &g->lattice;
	const size_t window = 2 * (size_t)l->half + 1, most = window < pixels ? window : pixels;
	const int place = (g->span.first - (int)l->radius) * (int)l->stride;
	double *dense = calloc(pixels, sizeof *dense);

	a->times = times;
	a->radius = l->radius;
	a->made = g->span.count;
	a->points = a->made + 2 * a->radius;
	a->run = calloc(a->points, sizeof *a->run);
	a->weight =
	    calloc((window + count_ends(a, l, place, pixels) * most) * times, sizeof *a->weight);
	a->filter = calloc(2 * (size_t)a->radius + 1, sizeof *a->filter);
	if (dense && a->run && a->weight && a->filter) {
		lattice_filter(l, sigma, a->filter);
		make_runs(a, l, place, pixels, border, dense);
	}
	free(dense);
	return a->used ? ERR_OK : ERR_MEMORY;
}

static void axis_fini(struct axis *a)
{
	free(a->run);
	free(a->weight);
	free(a->filter);
}

/* Brings a pixel into its form. */
static void convert(const struct shrink *s, double *pixel)
{
	const double middle = pixel_type_midpoint(s->image.type);
	const uint32_t colours = s->image.bands - 1;
	double luma;

	switch (s->form) {
	case SHRINK_PLAIN:
		break;
	case SHRINK_WEIGHTED:
		for (uint32_t b = 0; b < colours; b++)
			pixel[b] *= pixel[colours];
		break;
	case SHRINK_YCC:
		luma = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
		pixel[1] = (pixel[2] - luma) / 1.772 + middle;
		pixel[2] = (pixel[0] - luma) / 1.402 + middle;
		pixel[0] = luma;
		break;
	}
}

static size_t points_count(const struct shrink *s)
{
	return (size_t)s->axis[GRID_X].points * s->axis[GRID_Y].points * s->image.bands;
}

enum error shrink_new(const double sigma[GRID_AXES], const struct image *image,
                      enum shrink_form form, enum border border,
                      const double border_pixel[BANDS_MAX], struct shrink **shrink)
{
	const struct grid grid = grid_for(sigma, image->width, image->height, image->bands);
	struct shrink *s = calloc(1, sizeof *s);
	enum error e = s ? ERR_OK : ERR_MEMORY;

	*shrink = s;
	if (e)
		return e;
	s->image = *image;
	s->form = form;
	if (border == BORDER_CONSTANT) {
		memcpy(s->outside, border_pixel, image->bands * sizeof *s->outside);
		convert(s, s->outside);
	}
	e = axis_init(&s->axis[GRID_X], sigma[GRID_X], &grid.axis[GRID_X], image->width, border,
	              image->bands);
	if (!e)
		e = axis_init(&s->axis[GRID_Y], sigma[GRID_Y], &grid.axis[GRID_Y], image->height,
		              border, 1);
	s->near = s->axis[GRID_Y].inner;
	s->row = calloc((size_t)image->width * image->bands, sizeof *s->row);
	s->across = calloc((size_t)s->axis[GRID_X].points * image->bands, sizeof *s->across);
	s->points = e ? NULL : calloc(points_count(s), sizeof *s->points);
	if (!e && (!s->row || !s->across || !s->points))
		e = ERR_MEMORY;
	if (e)
		shrink_free(shrink);
	return e;
}

void shrink_free(struct shrink **shrink)
{
	struct shrink *s = *shrink;

	if (!s)
		return;
	for (int i = 0; i < GRID_AXES; i++)
		axis_fini(&s->axis[i]);
	free(s->row);
	free(s->across);
	free(s->points);
	free(s);
	*shrink = NULL;
}

uint64_t shrink_size(const double sigma[GRID_AXES], const struct image *image)
{
	const struct grid grid = grid_for(sigma, image->width, image->height, image->bands);
	uint64_t points = image->bands;

	for (int i = 0; i < GRID_AXES; i++)
		points *= grid.axis[i].span.count + 2 * grid.axis[i].lattice.radius;
	return (points + grid_words(sigma, image->width, image->height, image->bands)) *
	       sizeof(double);
}

/* Reads a row's samples. */
static void load_row(struct shrink *s, const void *pixels)
{
	const size_t samples = (size_t)s->image.width * s->image.bands;
	const uint8_t *bytes = pixels;
	const uint16_t *words = pixels;
	const float *floats = pixels;

	switch ((enum pixel_type)s->image.type) {
	case PIXEL_U8:
		for (size_t i = 0; i < samples; i++)
			s->row[i] = bytes[i];
		break;
	case PIXEL_U16:
		for (size_t i = 0; i < samples; i++)
			s->row[i] = words[i];
		break;
	case PIXEL_F32:
		for (size_t i = 0; i < samples; i++)
			s->row[i] = (double)floats[i];
		break;
	case PIXEL_TYPES:
		break;
	}
}

/* Brings the row's pixels into their form, and subtracts what is outside. */
static void convert_row(struct shrink *s)
{
	const uint32_t bands = s->image.bands;
	double *end = s->row + (size_t)s->image.width * bands;

	for (double *pixel = s->row; s->form != SHRINK_PLAIN && pixel < end; pixel += bands)
		convert(s, pixel);
	for (uint32_t b = 0; b < bands; b++)
		for (double *sample = s->row + b; s->outside[b] != 0 && sample < end;
		     sample += bands)
			*sample -= s->outside[b];
}

/* Adds `count` samples of whole pixels, by their weights, to a point. */
static void add_run(const double *weight, const double *sample, size_t count, uint32_t bands,
                    double *point)
{
	double sum[LANES] = {0};
	size_t i = 0;

	for (; i + LANES <= count; i += LANES)
#pragma GCC unroll 12
		for (size_t k = 0; k < LANES; k++)
			sum[k] += weight[i + k] * sample[i + k];
	for (size_t k = 0; i < count; i++, k++)
		sum[k] += weight[i] * sample[i];
	for (size_t k = 0; k < LANES && k < count; k += bands)
		for (uint32_t b = 0; b < bands; b++)
			point[b] += sum[k + b];
}

static void shrink_across(struct shrink *s)
{
	const struct axis *a = &s->axis[GRID_X];
	const size_t bands = s->image.bands;
	double *point = s->across;

	memset(point, 0, a->points * bands * sizeof *point);
	for (uint32_t i = 0; i < a->points; i++, point += bands)
		for (int n = 0; n < RUNS_MAX && a->run[i][n].count; n++) {
			const struct run *run = &a->run[i][n];

			add_run(a->weight + run->weights, s->row + run->first * bands,
			        run->count * bands, s->image.bands, point);
		}
}

static void add(double *to, const double *from, double weight, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] += weight * from[i];
}

/* Adds the row, shrunk, to the points down from `first` to before `end` that it counts for. */
static void add_row(struct shrink *s, uint32_t first, uint32_t end)
{
	const struct axis *a = &s->axis[GRID_Y];
	const size_t samples = (size_t)s->axis[GRID_X].points * s->image.bands;

	for (uint32_t i = first; i < end; i++)
		for (int n = 0; n < RUNS_MAX; n++) {
			const struct run *run = &a->run[i][n];

			if (s->y - run->first < run->count)
				add(s->points + i * samples, s->across,
				    a->weight[run->weights + s->y - run->first], samples);
		}
}

void shrink_row(struct shrink *s, const void *pixels)
{
	const struct axis *a = &s->axis[GRID_Y];
	uint32_t end;

	load_row(s, pixels);
	convert_row(s);
	shrink_across(s);
	while (s->near < a->inner_end &&
	       a->run[s->near][0].first + a->run[s->near][0].count <= s->y)
		s->near++;
	for (end = s->near; end < a->inner_end && a->run[end][0].first <= s->y;)
		end++;
	add_row(s, 0, a->inner);
	add_row(s, s->near, end);
	add_row(s, a->inner_end, a->points);
	s->y++;
}

/* Blurs along an axis: sums of rows of `samples`, in place, as each is made from itself and later
 * ones. sum: space for a row. */
static void blur(const struct axis *a, double *rows, size_t samples, double *sum)
{
	for (uint32_t i = 0; i < a->made; i++, rows += samples) {
		memset(sum, 0, samples * sizeof *sum);
		for (uint32_t k = 0; k <= 2 * a->radius; k++)
			add(sum, rows + k * samples, a->filter[k], samples);
		memcpy(rows, sum, samples * sizeof *sum);
	}
}

void shrink_end(struct shrink *s, double *words)
{
	const struct axis *x = &s->axis[GRID_X], *y = &s->axis[GRID_Y];
	const uint32_t bands = s->image.bands;
	const size_t samples = (size_t)x->points * bands, made = (size_t)x->made * bands;
	char *to = (char *)words;

	words[((size_t)y->made * made - 1) / 2] = 0; /* which may have room for one more */
	blur(y, s->points, samples, s->across);
	for (uint32_t j = 0; j < y->made; j++) {
		double *row = s->points + j * samples, sum[BANDS_MAX];

		blur(x, row, bands, sum);
		for (size_t i = 0; i < made; i++, to += sizeof(float)) {
			const float value = (float)(row[i] + s->outside[i % bands]);

			memcpy(to, &value, sizeof value);
		}
	}
}
