#include "device/plan/weights.h"

#include <CL/cl_half.h>
#include <math.h>
#include <stdlib.h>
#include <sys/param.h>

#include "base/log.h"
#include "device/plan/half_error.h"
#include "filters/regions.h"
#include "local.h"

/* The coefficients in writing order: a row and a column, or a matrix. */
struct list {
	const struct operation *operation;
	bool matrix;
	size_t width, height; /* the window's */
};

static double list_get(const struct list *l, size_t i)
{
	const double *c = l->operation->coefficients;

	if (!l->matrix || l->operation->kind == OPERATION_MATRIX)
		return c[i];
	return c[i % l->width] * c[l->width + i / l->width];
}

/* Writes coefficients in units of 1/65536 that sum to 65536: the largest absorbs the errors. */
static void write_q16(const struct list *l, size_t first, size_t count, uint32_t *out)
{
	size_t largest = 0;
	int64_t left = 65536;

	for (size_t i = 0; i < count; i++) {
		out[i] = (uint32_t)rint(list_get(l, first + i) * 65536);
		left -= out[i];
		if (out[i] > out[largest])
			largest = i;
	}
	out[largest] = (uint32_t)(out[largest] + left);
}

static void write_floats(const struct list *l, size_t first, size_t count, float *out)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (float)list_get(l, first + i);
}

/* Writes the words for gpu/matrix_fixed.cl: the shift, strips of upper bytes, strips of lower ones.
 * A strip has a row of the matrix between zeros; its word i begins at byte i. Returns the number of
 * words. */
static size_t write_strips(const struct list *l, uint32_t *out)
{
	const int reach = (int)(l->width / 2), rows = (int)l->height + 2;
	const int strip = MATRIX_FIXED_STRIP(reach), shift = fixed_shift(l->operation);

	for (int i = 0; out && i < rows * strip * 4; i++) {
		const int row = i / 4 / strip - 1, byte = i % 4;
		const int d = i / 4 % strip - 7 + byte - MATRIX_FIXED_SPAN(reach) + reach;
		uint32_t w;

		if (row < 0 || row >= (int)l->height || d < 0 || d > 2 * reach)
			continue;
		w = (uint32_t)(int32_t)rint(
		    ldexp(list_get(l, (size_t)row * l->width + (size_t)d), shift));
		out[1 + i / 4] |= (w >> 8 & 255) << 8 * byte;
		out[1 + rows * strip + i / 4] |= (w & 255) << 8 * byte;
	}
	if (out)
		out[0] = (uint32_t)shift;
	return 1 + 2 * (size_t)(rows * strip);
}

/* Writes the coefficients in a format; returns the number of words. out NULL: only counts. */
static size_t write_format(const struct list *l, enum weights format, size_t margin, void *out)
{
	size_t count = l->matrix ? l->width * l->height : operation_coefficients(l->operation);
	float *floats = out;

	switch (format) {
	case WEIGHTS_PADDED:
		if (out && l->matrix) { /* see matrix.cl */
			write_floats(l, 0, count, floats + margin * l->width);
		} else if (out) { /* see separable.cl */
			write_floats(l, l->width, l->height, floats + margin);
			write_floats(l, 0, l->width, floats + 2 * margin + l->height);
		}
		return count + 2 * margin * (l->matrix ? l->width : 1);
	case WEIGHTS_PAIRS:
		for (size_t i = 0; out && i < count; i++) {
			floats[2 * i] = (float)list_get(l, i);
			floats[2 * i + 1] = (float)(list_get(l, i) - floats[2 * i]);
		}
		return 2 * count;
	case WEIGHTS_Q16:
		if (out) {
			write_q16(l, 0, l->width, out);
			write_q16(l, l->width, l->height, (uint32_t *)out + l->width);
		}
		return count;
	case WEIGHTS_HALF2:
		for (size_t i = 0; out && i < count; i++)
			((uint32_t *)out)[i] =
			    cl_half_from_double(list_get(l, i), CL_HALF_RTE) * 0x10001u;
		return count;
	case WEIGHTS_STRIPS:
		return write_strips(l, out);
	case WEIGHTS_PLAIN:
		if (out)
			write_floats(l, 0, count, floats);
		return count;
	case WEIGHTS_NONE:
		return 0;
	}
	return 0;
}

/* Makes a buffer with a copy of 4-byte words. data: NULL if there was no memory for them. */
static enum error store(const struct device *device, const void *data, size_t words, cl_mem *buffer)
{
	cl_int code;

	if (!data)
		return ERR_MEMORY;
	*buffer =
	    object_add(OBJECT_STEP_WEIGHTS,
	               clCreateBuffer(device->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
	                              words * sizeof(uint32_t), (void *)(uintptr_t)data, &code));
	if (!code)
		return ERR_OK;
	log_error("cannot store %zu weights: %s", words, opencl_error_name(code));
	return ERR_DEVICE;
}

/* Does the same, and frees the words. */
static enum error store_own(const struct device *device, void *data, size_t words, cl_mem *buffer)
{
	const enum error e = store(device, data, words, buffer);

	free(data);
	return e;
}

enum error weights_new_lattice(const struct device *device, const struct lattice *lattice,
                               bool grow, cl_mem *buffer)
{
	enum { COUNT = LATTICE_TAPS_MAX * LATTICE_STRIDE_MAX };
	double numbers[COUNT] = {0};
	float data[COUNT];

	_Static_assert((int)COUNT >= (int)LATTICE_SPLINE_MAX, "there is room for both");
	if (grow)
		lattice_grow(lattice, (double(*)[LATTICE_STRIDE_MAX])numbers);
	else
		lattice_spline(lattice, numbers);
	for (size_t i = 0; i < COUNT; i++)
		data[i] = (float)numbers[i];
	return store(device, data, grow ? COUNT : 2 * (size_t)lattice->half + 1, buffer);
}

/* A word of a list: a place or a number, or a weight. */
union word {
	uint32_t whole;
	float real;
};

/* The list of a row of the source: its weights in the first row of the result that it counts for
 * and in those after it, and the place of that row. */
struct ring_row {
	union word weight[RESIZE_RING_ACTIVE];
	uint32_t entry, unused;
};
_Static_assert(sizeof(struct ring_row) == 4 * RESIZE_RING_ROW_WORDS, "as in resize_ring.cl");

/* The pixels of the result, and beside it, that have weights. */
static size_t listed_pixels(const struct geometry *g, int direction)
{
	return g->scale[direction].to + 2 * (size_t)g->after[direction];
}

/* The lists of a direction: for each pixel the first one that it is made from and their number, and
 * their weights; each with so many words from one to the next. */
struct pixel_lists {
	union word *from, *weights;
	uint32_t from_apart, weights_apart;
};

/* Writes them, with weights times `scale`. Returns false without memory. */
static bool write_pixels(const struct geometry *g, int direction, double scale,
                         struct pixel_lists at)
{
	const struct resizing *r = &g->scale[direction];
	const int32_t after = (int32_t)g->after[direction], last = (int32_t)r->to - 1;
	const int32_t end = (int32_t)listed_pixels(g, direction);
	double *weight = calloc(resizing_taps(r), sizeof *weight);
	const bool made = weight;

	for (int32_t i = 0; weight && i < end; i++) {
		/* Pixels that a border rule makes again need only be readable. */
		const int32_t like = g->wraps ? i - after : MIN(MAX(i - after, 0), last);
		const struct extent from = resizing_weights(r, like, weight);

		at.from[0].whole = (uint32_t)from.first;
		at.from[1].whole = from.count;
		for (uint32_t k = 0; k < from.count; k++)
			at.weights[k].real = (float)(weight[k] * scale);
		at.from += at.from_apart;
		at.weights += at.weights_apart;
	}
	free(weight);
	return made;
}

enum error weights_new_resize(const struct device *device, const struct geometry *g, int direction,
                              cl_mem *buffer, uint32_t *words)
{
	const size_t pixels = listed_pixels(g, direction);
	union word *list;
	enum error e = ERR_MEMORY;

	*words = resizing_taps(&g->scale[direction]) + 2;
	list = calloc(pixels, *words * sizeof *list);
	if (list &&
	    write_pixels(g, direction, 1, (struct pixel_lists){list, list + 2, *words, *words}))
		e = store(device, list, pixels * *words, buffer);
	free(list);
	return e;
}

/* Writes weights of a pixel as whole numbers, whose sum is exactly `one`. */
static void round_weights(const double *weight, uint32_t count, double one, int32_t *whole)
{
	int32_t rest = (int32_t)one;
	uint32_t largest = 0;

	for (uint32_t k = 0; k < count; k++) {
		whole[k] = (int32_t)lround(weight[k] * one);
		rest -= whole[k];
		largest = whole[k] > whole[largest] ? k : largest;
	}
	whole[largest] += rest;
}

/* Returns the largest power of 2 by which all weights of a direction may be multiplied to be signed
 * 16-bit numbers, with room for rounding, and sums of bytes 32-bit ones. */
static double find_one(const struct resizing *r, double *weight)
{
	double most = 1.0 / (1 << 6);

	for (uint32_t i = 0; i < r->to; i++) {
		const struct extent from = resizing_weights(r, (int32_t)i, weight);

		for (uint32_t k = 0; k < from.count; k++)
			most = fmax(most, fabs(weight[k]));
	}
	return exp2(floor(log2(INT16_MAX / 1.01 / most)));
}

/* Returns the most pixels that one of the result is made from. */
static uint32_t most_taps(const struct resizing *r, double *weight)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < r->to; i++)
		most = MAX(most, resizing_weights(r, (int32_t)i, weight).count);
	return most;
}

/* Writes the lists of rows for resize_ring: the ends, and those of the source's rows. one: 0, or
 * what a weight of 1 is as a whole number. */
static bool write_rows(const struct geometry *g, const struct extent *source, double one,
                       union word *ends, union word *lists)
{
	const struct resizing *r = &g->scale[1];
	double *weight = calloc(resizing_taps(r), sizeof *weight);
	int32_t *whole = calloc(resizing_taps(r), sizeof *whole);
	const bool made = weight && whole;
	struct ring_row *rows = (struct ring_row *)lists + 1, *row = rows;

	lists->whole = (uint32_t)source->first;
	for (uint32_t i = 0; made && i < r->to; i++) {
		const struct extent from = resizing_weights(r, (int32_t)i, weight);
		const uint32_t entry = i + g->after[1];
		struct ring_row *first = rows + (from.first - source->first);

		ends[2 * entry].whole = (uint32_t)from.first;
		ends[2 * entry + 1].whole = (uint32_t)from.first + from.count;
		for (; row < first + from.count; row++)
			row->entry = entry;
		if (one > 0)
			round_weights(weight, from.count, one, whole);
		for (uint32_t k = 0; k < from.count; k++) {
			const uint32_t place = entry - first[k].entry;

			if (place < RESIZE_RING_ACTIVE && one > 0)
				first[k].weight[place].whole = (uint16_t)whole[k];
			else if (place < RESIZE_RING_ACTIVE)
				first[k].weight[place].real = (float)weight[k];
		}
	}
	/* Two rows that count for the same ones are done at once. */
	for (struct ring_row *at = rows; made && one > 0 && at + 1 < row; at++)
		for (int k = 0; k < RESIZE_RING_ACTIVE && at[1].entry == at->entry; k++)
			at->weight[k].whole |= at[1].weight[k].whole << 16;
	free(weight);
	free(whole);
	return made;
}

enum error weights_new_ring(const struct device *device, const struct geometry *g,
                            enum pixel_type type, struct resize_lists *lists, cl_mem *buffer)
{
	const struct resizing *down = &g->scale[1];
	const struct extent source = resizing_source(down, (struct extent){0, down->to});
	double *weight =
	    calloc(MAX(resizing_taps(&g->scale[0]), resizing_taps(down)), sizeof *weight);
	const uint32_t taps = weight ? most_taps(&g->scale[0], weight) : 0;
	const size_t ends = 2 * listed_pixels(g, 0), line = 4 /* words that are loaded at once */;
	const size_t weights = roundup(ends + 2 * listed_pixels(g, 1), line);
	const size_t rows = roundup(weights + listed_pixels(g, 0) * RESIZE_RING_STRIDE(taps),
	                            (size_t)RESIZE_RING_ROW_WORDS);
	const size_t all = rows + RESIZE_RING_ROW_WORDS * (source.count + (size_t)1);
	union word *list = calloc(all, sizeof *list);
	const double one = type == PIXEL_U8 && weight ? find_one(down, weight) : 0;
	enum error e = ERR_MEMORY;

	lists->words = taps;
	for (int i = 0; i < 2; i++) {
		lists->inside_x[i] = g->after[0] + (i ? g->scale[0].to : 0);
		lists->inside_y[i] = g->after[1] + (i ? down->to : 0);
	}
	lists->weights = (uint32_t)weights;
	lists->rows = (uint32_t)rows;
	if (list && weight &&
	    write_pixels(g, 0, one > 0 ? 1 / one : 1,
	                 (struct pixel_lists){list, list + weights, 2, RESIZE_RING_STRIDE(taps)}) &&
	    write_rows(g, &source, one, list + ends, list + rows))
		e = store(device, list, all, buffer);
	free(weight);
	free(list);
	return e;
}

enum error weights_new_tables(const struct device *device, const struct operation *op,
                              enum pixel_type type, double full, cl_mem *buffer)
{
	const uint32_t entries = type == PIXEL_F32 ? op->entries : (uint32_t)full + 1;
	const size_t count = (size_t)entries * op->tables;
	const size_t words = (count * pixel_type_rows[type].size + 3) / 4;
	uint32_t *data = calloc(words, sizeof *data);

	for (size_t i = 0; data && i < count; i++)
		image_put_sample(data, i, type,
		                 type == PIXEL_F32 ? full * op->coefficients[i]
		                                   : operation_pixel(op, (uint32_t)(i / entries),
		                                                     (double)(i % entries), full));
	return store_own(device, data, words, buffer);
}

/* Stores the tables of tiles, as 16-bit numbers. */
static enum error store_tiles(const struct device *device, const struct operation *op,
                              cl_mem *buffer)
{
	const size_t count = (size_t)op->tables * op->tiles * op->tiles;
	uint16_t *tables = malloc(count * op->entries * sizeof *tables);

	for (size_t i = 0; tables && i < count; i++)
		clahe_table(op->plane + i * clahe_words(op->entries), op->entries,
		            tables + i * op->entries);
	return store_own(device, tables, count * op->entries / 2, buffer);
}

enum error weights_new_shapes(const struct device *device, const struct chain *chain,
                              cl_mem *buffer)
{
	const double *numbers = chain_shapes(chain);
	const size_t count = regions_numbers(&chain->regions);
	int32_t data[REGIONS_NUMBERS_MAX];

	for (size_t i = 0; i < count; i++)
		data[i] = (int32_t)numbers[i];
	return store(device, data, count, buffer);
}

enum error weights_new(const struct device *device, const struct operation *op, enum weights format,
                       bool as_matrix, uint32_t rows, cl_mem *buffer)
{
	struct list list = {
	    .operation = op,
	    .matrix = as_matrix || op->kind == OPERATION_MATRIX,
	    .width = 2 * (size_t)op->radius_x + 1,
	    .height = 2 * (size_t)op->radius_y + 1,
	};
	size_t words;
	uint32_t *data;

	*buffer = NULL;
	if (op->kind == OPERATION_CLAHE)
		return store_tiles(device, op, buffer);
	if (op->plane)
		return store(device, op->plane, 2 * op->plane_words, buffer);
	if (format == WEIGHTS_NONE)
		return ERR_OK;
	words = write_format(&list, format, rows - 1, NULL);
	data = calloc(words, sizeof *data);
	if (data)
		write_format(&list, format, rows - 1, data);
	return store_own(device, data, words, buffer);
}
