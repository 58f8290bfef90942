/* The reference: what the definitions of the filters come to, without any care for speed. It shares
 * only border_map() and filter_lower() with the kernels' path: it has no tiles, no halo, and makes
 * the whole image after each filter.
 *
 * An image here is an array of doubles that hold pixel values, interleaved. */
#include "device/reference.h"

#include <math.h>
#include <stdlib.h>

#include "border.h"
#include "common/filters.h"

/* An image and how to look outside it. */
struct canvas {
	struct image image;
	enum border border;
	double border_pixel[BANDS_MAX];
	double *sample;
};

static size_t sample_count(const struct image *image)
{
	return (size_t)image->width * image->height * image->bands;
}

static double *canvas_at(const struct canvas *c, uint32_t x, uint32_t y, uint32_t band)
{
	return &c->sample[((size_t)y * c->image.width + x) * c->image.bands + band];
}

/* The sample at any place, inside or outside; never called outside with BORDER_CROP. */
static double canvas_get(const struct canvas *c, int x, int y, uint32_t band)
{
	int width = (int)c->image.width, height = (int)c->image.height;
	bool inside = x >= 0 && y >= 0 && x < width && y < height;

	if (!inside && c->border == BORDER_CONSTANT)
		return c->border_pixel[band];
	x = border_map(x, width, (int)c->border);
	y = border_map(y, height, (int)c->border);
	return *canvas_at(c, (uint32_t)x, (uint32_t)y, band);
}

static void canvas_load(struct canvas *c, const void *pixels)
{
	size_t count = sample_count(&c->image);

	for (size_t i = 0; i < count; i++)
		c->sample[i] = c->image.type == PIXEL_U8    ? ((const uint8_t *)pixels)[i]
		               : c->image.type == PIXEL_U16 ? ((const uint16_t *)pixels)[i]
		                                            : ((const float *)pixels)[i];
}

/* What a pixel of the image's type can hold of a value. */
static double round_to_type(double value, enum pixel_type type)
{
	double full = pixel_type_full_scale(type);

	if (type == PIXEL_F32)
		return (float)value;
	value = rint(value);
	return value < 0 ? 0 : value > full ? full : value;
}

static void canvas_store(const struct canvas *c, void *pixels)
{
	size_t count = sample_count(&c->image);

	for (size_t i = 0; i < count; i++)
		if (c->image.type == PIXEL_U8)
			((uint8_t *)pixels)[i] = (uint8_t)c->sample[i];
		else if (c->image.type == PIXEL_U16)
			((uint16_t *)pixels)[i] = (uint16_t)c->sample[i];
		else
			((float *)pixels)[i] = (float)c->sample[i];
}

static double apply_matrix(const struct operation *op, const struct canvas *in, int x, int y,
                           uint32_t band)
{
	int rx = (int)op->radius_x, ry = (int)op->radius_y;
	const double *m = op->coefficients;
	double sum = 0;

	for (int j = -ry; j <= ry; j++)
		for (int i = -rx; i <= rx; i++)
			sum += *m++ * canvas_get(in, x + i, y + j, band);
	return sum;
}

static double apply_gradient(const struct operation *op, const struct canvas *in, int x, int y,
                             uint32_t band)
{
	double gx = 0, gy = 0;

	for (int j = -1; j <= 1; j++) {
		double smooth = op->coefficients[j + 1];

		gx += smooth *
		      (canvas_get(in, x + 1, y + j, band) - canvas_get(in, x - 1, y + j, band));
		gy += smooth *
		      (canvas_get(in, x + j, y + 1, band) - canvas_get(in, x + j, y - 1, band));
	}
	return op->output == GRADIENT_X ? gx : op->output == GRADIENT_Y ? gy : hypot(gx, gy);
}

/* One row of a separable operation: the column sums of all columns that the row filter reaches,
 * then the row filter. `sums` has room for the width and a radius on both sides. */
static void apply_separable_row(const struct operation *op, const struct canvas *in, int y,
                                uint32_t band, int x0, double *sums, double *out, uint32_t count)
{
	int rx = (int)op->radius_x, ry = (int)op->radius_y;
	const double *row = op->coefficients, *column = row + 2 * rx + 1;

	for (int x = 0; x < (int)count + 2 * rx; x++) {
		sums[x] = 0;
		for (int j = -ry; j <= ry; j++)
			sums[x] += column[j + ry] * canvas_get(in, x0 + x - rx, y + j, band);
	}
	for (uint32_t x = 0; x < count; x++) {
		out[x] = 0;
		for (int i = 0; i <= 2 * rx; i++)
			out[x] += row[i] * sums[(int)x + i];
	}
}

/* One row of any operation, `count` results from (x0, y) on. */
static void apply_row(const struct operation *op, const struct canvas *in, int x0, int y,
                      uint32_t band, double *sums, double *out, uint32_t count)
{
	if (op->kind == OPERATION_SEPARABLE) {
		apply_separable_row(op, in, y, band, x0, sums, out, count);
		return;
	}
	for (uint32_t x = 0; x < count; x++)
		out[x] = op->kind == OPERATION_MATRIX
		             ? apply_matrix(op, in, x0 + (int)x, y, band)
		             : apply_gradient(op, in, x0 + (int)x, y, band);
}

/* The operation on every band alike, unrounded. (x0, y0): where the result begins in the input. */
static enum error apply_plain(const struct operation *op, const struct canvas *in,
                              struct canvas *out, int x0, int y0)
{
	uint32_t width = out->image.width;
	double *sums = calloc((size_t)width * 2 + 2 * op->radius_x, sizeof *sums);
	double *row = sums ? sums + width + 2 * op->radius_x : NULL;

	if (!sums)
		return ERR_MEMORY;
	for (uint32_t y = 0; y < out->image.height; y++)
		for (uint32_t band = 0; band < out->image.bands; band++) {
			apply_row(op, in, x0, y0 + (int)y, band, sums, row, width);
			for (uint32_t x = 0; x < width; x++)
				*canvas_at(out, x, y, band) = row[x];
		}
	free(sums);
	return ERR_OK;
}

/* Calls a function for each pixel of an image whose last band is alpha. */
static void each_pixel(struct canvas *c, void (*function)(double *colour, uint32_t n, double alpha))
{
	uint32_t colours = c->image.bands - 1;

	for (size_t i = 0; i < sample_count(&c->image); i += c->image.bands)
		function(&c->sample[i], colours, c->sample[i + colours]);
}

static void premultiply(double *colour, uint32_t n, double alpha)
{
	for (uint32_t i = 0; i < n; i++)
		colour[i] *= alpha;
}

static void unpremultiply(double *colour, uint32_t n, double alpha)
{
	for (uint32_t i = 0; i < n; i++)
		colour[i] = alpha > 0 ? colour[i] / alpha : 0;
}

/* Premultiplies, filters, divides. The constant outside is premultiplied as the pixels are. */
static enum error apply_premultiplied(const struct operation *op, struct canvas *in,
                                      struct canvas *out, int x0, int y0)
{
	uint32_t colours = in->image.bands - 1;
	double plain[BANDS_MAX];
	enum error e;

	for (uint32_t i = 0; i < BANDS_MAX; i++)
		plain[i] = in->border_pixel[i];
	premultiply(in->border_pixel, colours, in->border_pixel[colours]);
	each_pixel(in, premultiply);
	e = apply_plain(op, in, out, x0, y0);
	each_pixel(out, unpremultiply);
	for (uint32_t i = 0; i < BANDS_MAX; i++)
		in->border_pixel[i] = out->border_pixel[i] = plain[i];
	return e;
}

/* Adds the offset to colours and rounds. premultiplied: no colour where alpha is 0 or less. */
static void finish(struct canvas *out, double offset, bool premultiplied)
{
	uint32_t bands = out->image.bands;

	for (size_t i = 0; i < sample_count(&out->image); i++) {
		double alpha = out->sample[i - i % bands + bands - 1];
		bool is_alpha = out->image.alpha && i % bands == bands - 1;

		if (!is_alpha && !(premultiplied && alpha <= 0))
			out->sample[i] += offset;
	}
	for (size_t i = 0; i < sample_count(&out->image); i++)
		out->sample[i] = round_to_type(out->sample[i], out->image.type);
}

static void keep_alpha(const struct canvas *in, struct canvas *out, uint32_t x0, uint32_t y0)
{
	uint32_t band = out->image.bands - 1;

	for (uint32_t y = 0; y < out->image.height; y++)
		for (uint32_t x = 0; x < out->image.width; x++)
			*canvas_at(out, x, y, band) = *canvas_at(in, x0 + x, y0 + y, band);
}

/* One operation; *out is made for it. */
static enum error apply(const struct operation *op, struct canvas *in, struct canvas *out)
{
	bool crop = in->border == BORDER_CROP;
	uint32_t x0 = crop ? op->radius_x : 0, y0 = crop ? op->radius_y : 0;
	bool premultiplied = in->image.alpha && op->smoothing;
	double midpoint = op->signed_output ? pixel_type_midpoint(in->image.type) : 0;
	enum error e;

	*out = *in;
	out->image.width -= 2 * x0;
	out->image.height -= 2 * y0;
	out->sample = calloc(sample_count(&out->image), sizeof *out->sample);
	if (!out->sample)
		return ERR_MEMORY;
	if (premultiplied)
		e = apply_premultiplied(op, in, out, (int)x0, (int)y0);
	else
		e = apply_plain(op, in, out, (int)x0, (int)y0);
	if (in->image.alpha && !premultiplied)
		keep_alpha(in, out, x0, y0);
	finish(out, op->offset + midpoint, premultiplied);
	return e;
}

/* One filter of the chain: *c becomes its result. */
static enum error apply_call(const struct chain *chain, uint32_t i, struct canvas *c)
{
	struct operation op;
	struct canvas out;
	enum error e = filter_lower(&chain->call[i], chain->coefficient, &op);

	if (e)
		return e;
	e = apply(&op, c, &out);
	operation_fini(&op);
	free(c->sample);
	*c = out;
	return e;
}

enum error reference_filter(const struct chain *chain, const struct image *image, const void *in,
                            void **out)
{
	struct canvas c = {.image = *image, .border = chain->border};
	struct problem problem;
	uint32_t width, height;
	enum error e = chain_output_size(chain, image, &width, &height, &problem);

	if (!e)
		e = chain_border_pixel(chain, image, c.border_pixel, &problem);
	if (e)
		return e;
	c.sample = calloc(sample_count(image), sizeof *c.sample);
	if (!c.sample)
		return ERR_MEMORY;
	canvas_load(&c, in);
	for (uint32_t i = 0; !e && i < chain->count; i++)
		e = apply_call(chain, i, &c);
	*out = e ? NULL : malloc(image_size(&c.image));
	if (*out)
		canvas_store(&c, *out);
	else if (!e)
		e = ERR_MEMORY;
	free(c.sample);
	return e;
}
