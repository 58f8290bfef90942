/* Each thread has a band of rows. It converts them, with their halo, to floats, filters one row at
 * a time by adding up shifted rows times weights (loops that compilers vectorise), and rounds. */
#include "bench/bench.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/param.h>

#include "filters/filters.h"

enum { THREADS_MAX = 8, REPEATS = 5, CHECKED_ROWS = 4, CHECKED_COLUMNS = 96 };

/* Multiply-adds of a thread in a run, which take some hundredths of a second. */
static const double band_work = 2e7;

struct filter_work {
	const struct case_pixels *pixels;
	struct operation op;
	float offset, space, range;
	float *weights;
	char *out; /* packed rows of the result */
	uint32_t rows, threads;
};

struct band {
	const struct filter_work *work;
	uint32_t first, end;
	float *in;     /* its rows with their halo */
	float *across; /* a separable filter's rows after the first pass */
	float *sum;
	size_t samples, pitch; /* per row of the result, and of `in` */
	pthread_t thread;
};

/* Adds up rows that lie `apart` samples from each other, each times a weight. */
static void add_rows(float *restrict to, const float *restrict from, size_t apart,
                     const float *weights, size_t rows, size_t count)
{
	enum { LANES = 8 };

	for (size_t row = 0; row < rows; row++, from += apart) {
		const float weight = weights[row];
		size_t i = 0;

		for (; i + LANES <= count; i += LANES)
			for (size_t k = 0; k < LANES; k++)
				to[i + k] += weight * from[i + k];
		for (; i < count; i++)
			to[i] += weight * from[i];
	}
}

static void set_row(float *to, float value, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = value;
}

static float clamp_round(float value, float most)
{
	return rintf(fminf(fmaxf(value, 0), most));
}

/* Returns the sample at the left end of row y's window; y also counts the rows of the halo. */
static const float *in_row(const struct band *b, uint32_t y)
{
	return b->in + y * b->pitch;
}

static void filter_matrix(struct band *b, uint32_t y)
{
	const struct operation *op = &b->work->op;
	const uint32_t bands = b->work->pixels->part.bands, width = 2 * op->radius_x + 1;

	for (uint32_t j = 0; j <= 2 * op->radius_y; j++)
		add_rows(b->sum, in_row(b, y + j), bands, b->work->weights + j * width, width,
		         b->samples);
}

static void filter_separable(struct band *b, uint32_t y)
{
	const struct operation *op = &b->work->op;

	add_rows(b->sum, b->across + y * b->samples, b->samples,
	         b->work->weights + 2 * op->radius_x + 1, 2 * op->radius_y + 1, b->samples);
}

static void filter_gradient(struct band *b, uint32_t y)
{
	const float *above = in_row(b, y), *here = in_row(b, y + 1), *below = in_row(b, y + 2);
	const size_t centre = b->work->pixels->part.bands, right = 2 * centre;
	const float outer = b->work->weights[0], inner = b->work->weights[1],
	            last = b->work->weights[2];

	for (size_t x = 0; x < b->samples; x++) {
		const float gx = outer * (above[x + right] - above[x]) +
		                 inner * (here[x + right] - here[x]) +
		                 last * (below[x + right] - below[x]);
		const float gy = outer * (below[x] - above[x]) +
		                 inner * (below[x + centre] - above[x + centre]) +
		                 last * (below[x + right] - above[x + right]);

		b->sum[x] += sqrtf(gx * gx + gy * gy);
	}
}

static void filter_bilateral(struct band *b, uint32_t y)
{
	const int n = (int)b->work->op.radius_x;
	const uint32_t bands = b->work->pixels->part.bands;

	for (size_t x = 0; x < b->samples; x += bands) {
		const float *centre = in_row(b, y + (uint32_t)n) + x + (uint32_t)n * bands;
		float total = 0, sum[BANDS_MAX] = {0};

		for (int j = -n; j <= n; j++)
			for (int i = -n; i <= n; i++) {
				const float *p = centre + j * (ptrdiff_t)b->pitch + i * (int)bands;
				const float d2 = (float)(i * i + j * j);
				float e2 = 0, weight;

				if (i * i + j * j > n * n)
					continue;
				for (uint32_t k = 0; k < bands; k++)
					e2 += (p[k] - centre[k]) * (p[k] - centre[k]);
				weight = expf(b->work->space * d2 + b->work->range * e2);
				for (uint32_t k = 0; k < bands; k++)
					sum[k] += weight * p[k];
				total += weight;
			}
		for (uint32_t k = 0; k < bands; k++)
			b->sum[x + k] += sum[k] / total;
	}
}

typedef void filter_row(struct band *b, uint32_t y);

/* NULL: not done here. */
static filter_row *const filters[OPERATIONS] = {
    [OPERATION_SEPARABLE] = filter_separable,
    [OPERATION_MATRIX] = filter_matrix,
    [OPERATION_GRADIENT] = filter_gradient,
    [OPERATION_BILATERAL] = filter_bilateral,
};

static void *run_band(void *data)
{
	struct band *b = data;
	const struct filter_work *w = b->work;
	const struct case_pixels *p = w->pixels;
	const struct view *tile = &p->source_view[FORM_TILE][0];
	const size_t pixel = image_pixel_size(&p->part);
	const uint32_t halo = w->op.radius_y, rows = b->end - b->first;
	const char *row = p->tile + tile->origin - w->op.radius_x * pixel +
	                  ((ptrdiff_t)b->first - (ptrdiff_t)halo) * tile->pitch;
	const enum pixel_type type = p->part.type;
	float *to = b->in;
	void *result;

	for (uint32_t y = 0; y < rows + 2 * halo; y++, row += tile->pitch, to += b->pitch)
		for (size_t i = 0; i < b->pitch; i++)
			to[i] = type == PIXEL_U8    ? ((const uint8_t *)row)[i]
			        : type == PIXEL_U16 ? ((const uint16_t *)(const void *)row)[i]
			                            : ((const float *)(const void *)row)[i];
	for (uint32_t y = 0; b->across && y < rows + 2 * halo; y++) { /* a first pass */
		set_row(b->across + y * b->samples, 0, b->samples);
		add_rows(b->across + y * b->samples, in_row(b, y), p->part.bands, w->weights,
		         2 * w->op.radius_x + 1, b->samples);
	}
	for (uint32_t y = 0; y < rows; y++) {
		set_row(b->sum, w->offset, b->samples);
		filters[w->op.kind](b, y);
		result = w->out + (b->first + y) * image_row_size(&p->part);
		for (size_t i = 0; i < b->samples; i++)
			if (type == PIXEL_U8)
				((uint8_t *)result)[i] = (uint8_t)clamp_round(b->sum[i], 255);
			else if (type == PIXEL_U16)
				((uint16_t *)result)[i] = (uint16_t)clamp_round(b->sum[i], 65535);
			else
				((float *)result)[i] = b->sum[i];
	}
	return NULL;
}

static void band_init(struct band *b, const struct filter_work *w, uint32_t index)
{
	const struct image *part = &w->pixels->part;
	size_t rows;

	b->work = w;
	b->first = (uint32_t)((uint64_t)w->rows * index / w->threads);
	b->end = (uint32_t)((uint64_t)w->rows * (index + 1) / w->threads);
	rows = b->end - b->first + 2 * (size_t)w->op.radius_y;
	b->samples = (size_t)part->width * part->bands;
	b->pitch = b->samples + 2 * (size_t)w->op.radius_x * part->bands;
	b->in = bench_alloc(rows * b->pitch * sizeof *b->in);
	b->sum = bench_alloc(b->samples * sizeof *b->sum);
	if (w->op.kind == OPERATION_SEPARABLE)
		b->across = bench_alloc(rows * b->samples * sizeof *b->across);
}

/* Prepares everything but the bands. Returns false if there is no code for the case. */
static bool work_init(struct filter_work *w, uint32_t threads)
{
	const struct chain *chain = &w->pixels->c->chain;
	const struct image *part = &w->pixels->part;
	const double full = pixel_type_rows[part->type].full_scale;
	double row_work, rows;
	size_t count;

	if (chain->count != 1 || chain->call[0].channels != CHANNELS_ALL)
		return false;
	bench_must(filter_lower(&chain->call[0], chain->coefficient, &w->op));
	if (!filters[w->op.kind] ||
	    (w->op.kind == OPERATION_GRADIENT && w->op.output != GRADIENT_MAGNITUDE)) {
		operation_fini(&w->op);
		return false;
	}
	count = operation_coefficients(&w->op);
	w->weights = bench_alloc((count + 1) * sizeof *w->weights);
	for (size_t i = 0; i < count; i++)
		w->weights[i] = (float)w->op.coefficients[i];
	w->offset = (float)(w->op.offset +
	                    (w->op.signed_output ? pixel_type_rows[part->type].midpoint : 0));
	w->space = (float)w->op.space;
	w->range = (float)(w->op.range / (full * full));
	row_work =
	    operation_terms(w->op.kind, w->op.radius_x, w->op.radius_y) * part->width * part->bands;
	rows = fmin(part->height, ceil(band_work / row_work) * threads);
	w->rows = (uint32_t)rows;
	w->threads = MIN(threads, w->rows);
	w->out = bench_alloc(w->rows * image_row_size(part));
	return true;
}

bool processor_measure(const struct case_pixels *pixels, struct measured *m)
{
	const struct image *part = &pixels->part;
	const uint32_t columns = MIN(part->width, CHECKED_COLUMNS);
	const size_t row = image_row_size(part);
	struct filter_work w = {.pixels = pixels};
	struct band bands[THREADS_MAX] = {0};
	double ms[REPEATS], scale;

	if (!work_init(&w, m->threads))
		return false;
	for (uint32_t i = 0; i < w.threads; i++)
		band_init(&bands[i], &w, i);
	for (int i = 0; i < REPEATS; i++) { /* one band in this thread */
		const double begun = times_now();

		for (uint32_t k = 1; k < w.threads; k++)
			if (pthread_create(&bands[k].thread, NULL, run_band, &bands[k]))
				bench_must(ERR_MEMORY);
		run_band(&bands[0]);
		for (uint32_t k = 1; k < w.threads; k++)
			pthread_join(bands[k].thread, NULL);
		ms[i] = times_now() - begun;
	}
	m->times = times_of_runs(ms, REPEATS, 0, &m->runs);
	scale = (double)part->height / w.rows;
	m->times.median *= scale;
	m->times.mean *= scale;
	for (uint32_t i = 0; i < w.threads; i++) {
		const uint32_t rows = MIN(bands[i].end - bands[i].first, CHECKED_ROWS);
		struct window window = {0, bands[i].first, columns, rows};

		check_window(pixels, &window, w.out + window.y0 * row, row, m);
		window.x0 = part->width - columns;
		window.y0 = bands[i].end - rows;
		check_window(pixels, &window,
		             w.out + window.y0 * row + window.x0 * image_pixel_size(part), row, m);
		free(bands[i].in);
		free(bands[i].across);
		free(bands[i].sum);
	}
	free(w.weights);
	free(w.out);
	operation_fini(&w.op);
	return true;
}
