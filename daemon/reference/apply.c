/* The operations in double precision: loops run along rows of interleaved samples, in which
 * neighbours of one band are `bands` apart.
 *
 * The hard part is the slack. After an earlier filter a sample may be off (by a count, say), so a
 * result may be off by the sum of these errors over the window, times the weights' magnitudes. An
 * operation that divides (by alpha), decides (by a threshold) or turns (a direction) can make a
 * small error a large one; only there is the slack large. The result is NAN, and may be anything,
 * if a sum may not fit a float32. */
#include "reference/apply.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "element.h"
#include "filters/edges.h"

/* The weights of a window: a matrix, or a row and a column; or the mean of blocks of an image. */
struct taps {
	int radius_x, radius_y;
	const double *matrix; /* NULL: row and column */
	const double *row, *column;
	bool sparse; /* samples of weight 0 are skipped, even NaN */
	const struct image *blocks;
	const struct resizing *across, *down; /* instead */
	bool limited; /* sums of columns that a float cannot hold are infinite */
};

/* `from` and `to` are laid out like the samples of `in` and `out`. magnitudes: weights are replaced
 * by their magnitudes. */
static bool correlate_matrix(const struct taps *t, bool magnitudes, const struct canvas *in,
                             const double *from, const struct canvas *out, double *to)
{
	const size_t span = (size_t)out->at.width * out->bands;
	const size_t all = (2 * (size_t)t->radius_x + 1) * (2 * (size_t)t->radius_y + 1);
	double *weight = malloc(all * sizeof *weight);
	ptrdiff_t *offset = malloc(all * sizeof *offset);
	const double *m = t->matrix;
	size_t taps = 0;

	for (int j = -t->radius_y; weight && offset && j <= t->radius_y; j++)
		for (int i = -t->radius_x; i <= t->radius_x; i++, m++) {
			weight[taps] = magnitudes ? fabs(*m) : *m;
			offset[taps] = ((ptrdiff_t)j * in->at.width + i) * (ptrdiff_t)in->bands;
			taps += *m != 0 || !t->sparse;
		}
	for (uint32_t y = 0; weight && offset && y < out->at.height; y++)
		rows_sum(to + y * span, span,
		         from + canvas_index(in, out->at.x, out->at.y + (int)y), offset, weight,
		         taps);
	free(weight);
	free(offset);
	return weight && offset;
}

/* Filters some rows at a time: first makes the column sums of all pixels that the row filter needs,
 * for so many columns that a cache holds them, then applies the row filter. */
static bool correlate_separable(const struct taps *t, bool magnitudes, const struct canvas *in,
                                const double *from, const struct canvas *out, double *to)
{
	const size_t most = out->at.height < 128 ? roundup(out->at.height, 4u) : 128;
	const size_t across = 2 * (size_t)t->radius_x + 1, down = 2 * (size_t)t->radius_y + 1;
	const size_t span = (size_t)out->at.width * out->bands;
	const size_t reach = span + (across - 1) * in->bands;
	const size_t made = roundup(span, ROWS_PIXELS * in->bands);
	const size_t width = roundup(made + (across - 1) * in->bands, (size_t)ROWS_COLUMNS);
	const size_t pitch = (size_t)in->at.width * in->bands;
	double *sums = malloc((most * width + made + (most + down) * ROWS_COLUMNS + across + down) *
	                      sizeof *sums);
	double *line, *strip, *row, *column;

	if (!sums)
		return false;
	line = sums + most * width;
	strip = line + made;
	row = strip + (most + down) * ROWS_COLUMNS;
	column = row + across;
	for (size_t i = 0; i < across; i++)
		row[i] = magnitudes ? fabs(t->row[i]) : t->row[i];
	for (size_t i = 0; i < down; i++)
		column[i] = magnitudes ? fabs(t->column[i]) : t->column[i];
	for (uint32_t y = 0; y < out->at.height; y += (uint32_t)most) {
		const uint32_t left = out->at.height - y;
		const size_t rows = left < most ? left : most;
		const double *first = from + canvas_index(in, out->at.x - t->radius_x,
		                                          out->at.y + (int)y - t->radius_y);

		for (size_t k = 0; k < reach; k += ROWS_COLUMNS) {
			const size_t columns = reach - k < ROWS_COLUMNS ? reach - k : ROWS_COLUMNS;

			const bool few = down < 32 && columns == ROWS_COLUMNS && rows % 4 == 0;

			for (size_t i = 0; !few && i < rows + down - 1; i++)
				memcpy(strip + i * ROWS_COLUMNS, first + i * pitch + k,
				       columns * sizeof *strip);
			rows_sum_down(sums + k, width, roundup(rows, (size_t)4),
			              few ? first + k : strip, few ? pitch : ROWS_COLUMNS, column,
			              down);
		}
		for (size_t i = 0; i < rows; i++) {
			double *result = to + (y + i) * span;

			rows_sum_along(made == span ? result : line, span, sums + i * width,
			               in->bands, row, across);
			if (made != span)
				memcpy(result, line, span * sizeof *to);
		}
	}
	free(sums);
	return true;
}

/* Returns the start of the block of place i. Outside the image, of n pixels, that is the start for
 * the place that `wrap` copies. */
static int block_start(int i, int n, int side)
{
	return i - (i % n + n) % n % side;
}

/* Each block is computed where its first row and column meet `out`. */
static void correlate_blocks(const struct taps *t, const struct canvas *in, const double *from,
                             const struct canvas *out, double *to)
{
	const int width = t->radius_x + 1, height = t->radius_y + 1;
	const size_t bands = out->bands, span = out->at.width * bands;

	for (uint32_t j = 0; j < out->at.height; j++, to += span) {
		const int y = out->at.y + (int)j;
		const int at_y = block_start(y, (int)t->blocks->height, height);

		if (j && at_y < y) {
			memcpy(to, to - span, span * sizeof *to);
			continue;
		}
		for (uint32_t i = 0; i < out->at.width; i++) {
			const int x = out->at.x + (int)i;
			const int at_x = block_start(x, (int)t->blocks->width, width);
			double *pixel = to + i * bands;

			if (i && at_x < x) {
				memcpy(pixel, pixel - bands, bands * sizeof *to);
				continue;
			}
			for (size_t b = 0; b < bands; b++)
				pixel[b] = 0;
			for (int row = at_y; row < at_y + height; row++)
				for (size_t k = 0; k < (size_t)width * bands; k++)
					pixel[k % bands] += from[canvas_index(in, at_x, row) + k];
			for (size_t b = 0; b < bands; b++)
				pixel[b] /= (double)width * height;
		}
	}
}

/* Sets a result pixel's weights; returns the places of the source's pixels, `step` apart. */
static struct extent resize_taps(const struct resizing *r, bool magnitudes, int i, size_t step,
                                 double *weight, ptrdiff_t *offset)
{
	const struct extent from = resizing_weights(r, i, weight);

	for (uint32_t k = 0; k < from.count; k++) {
		weight[k] = magnitudes ? fabs(weight[k]) : weight[k];
		offset[k] = (ptrdiff_t)(k * step);
	}
	return from;
}

/* First the columns, then the rows. */
static bool correlate_resized(const struct taps *t, bool magnitudes, const struct canvas *in,
                              const double *from, const struct canvas *out, double *to)
{
	const size_t bands = in->bands, pitch = in->at.width * bands;
	const size_t most = MAX(resizing_taps(t->across), resizing_taps(t->down));
	double *between = malloc((out->at.height * pitch + most) * sizeof *between);
	double *weight = between + out->at.height * pitch;
	ptrdiff_t *offset = malloc(most * sizeof *offset);

	for (uint32_t y = 0; between && offset && y < out->at.height; y++) {
		const struct extent rows =
		    resize_taps(t->down, magnitudes, out->at.y + (int)y, pitch, weight, offset);

		rows_sum(between + y * pitch, pitch, from + canvas_index(in, in->at.x, rows.first),
		         offset, weight, rows.count);
	}
	for (size_t k = 0; t->limited && between && offset && k < out->at.height * pitch; k++)
		between[k] = between[k] <= FLT_MAX ? between[k] : INFINITY;
	for (uint32_t x = 0; between && offset && x < out->at.width; x++) {
		const struct extent columns =
		    resize_taps(t->across, magnitudes, out->at.x + (int)x, bands, weight, offset);

		for (uint32_t y = 0; y < out->at.height; y++)
			rows_sum(to + ((size_t)y * out->at.width + x) * bands, bands,
			         between + y * pitch + (size_t)(columns.first - in->at.x) * bands,
			         offset, weight, columns.count);
	}
	free(between);
	free(offset);
	return between && offset;
}

static bool correlate(const struct taps *t, bool magnitudes, const struct canvas *in,
                      const double *from, const struct canvas *out, double *to)
{
	if (t->across)
		return correlate_resized(t, magnitudes, in, from, out, to);
	if (t->matrix)
		return correlate_matrix(t, magnitudes, in, from, out, to);
	if (!t->blocks)
		return correlate_separable(t, magnitudes, in, from, out, to);
	correlate_blocks(t, in, from, out, to);
	return true;
}

/* Filters the values, and the slacks by the weights' magnitudes. */
static bool correlate_both(const struct taps *t, const struct canvas *in, struct canvas *out)
{
	return correlate(t, false, in, in->value, out, out->value) &&
	       (in->exact || correlate(t, true, in, in->slack, out, out->slack));
}

/* Makes `count` results, each the extreme of n samples that are `stride` apart, starting at its own
 * place; each pass doubles the number of samples. Uses both buffers; the result is in one of
 * them. */
static const double *slide(double *a, double *b, size_t count, size_t stride, size_t n,
                           bool largest)
{
	for (size_t seen = 1; seen < n;) {
		const size_t more = 2 * seen <= n ? seen : n - seen;
		double *made = b;

		rows_extreme(made, a, a + more * stride, largest,
		             count + (n - seen - more) * stride);
		b = a;
		a = made;
		seen += more;
	}
	return a;
}

/* Finds the extremes of a rectangle around each sample; magnitudes: of finite magnitudes. `from`
 * and `to` are laid out like the samples of `in` and `out`. Works on so many columns at a time that
 * a cache holds them. */
static bool rectangle_extremes(int rx, int ry, bool largest, bool magnitudes,
                               const struct canvas *in, const double *from,
                               const struct canvas *out, double *to)
{
	enum { CHUNK = 32 };
	const size_t height = out->at.height, rows = height + 2 * (size_t)ry;
	const size_t span = (size_t)out->at.width * out->bands;
	const size_t reach = span + 2 * (size_t)rx * in->bands;
	const size_t size = rows * CHUNK > reach ? rows * CHUNK : reach;
	double *columns = malloc((height * reach + 2 * size) * sizeof *columns);
	double *a = columns + height * reach, *b = a + size;
	const double *found;

	for (size_t k = 0; columns && k < reach; k += CHUNK) {
		const size_t width = reach - k < CHUNK ? reach - k : CHUNK;
		const double *at = from + k + canvas_index(in, out->at.x - rx, out->at.y - ry);

		for (size_t y = 0; y < rows; y++, at += (size_t)in->at.width * in->bands)
			if (magnitudes)
				rows_magnitude(a + y * width, at, width);
			else
				memcpy(a + y * width, at, width * sizeof *a);
		found = slide(a, b, height * width, width, 2 * (size_t)ry + 1, largest);
		for (size_t y = 0; y < height; y++)
			memcpy(columns + y * reach + k, found + y * width, width * sizeof *a);
	}
	for (size_t y = 0; columns && y < height; y++) {
		memcpy(a, columns + y * reach, reach * sizeof *a);
		found = slide(a, b, span, in->bands, 2 * (size_t)rx + 1, largest);
		memcpy(to + y * span, found, span * sizeof *to);
	}
	free(columns);
	return columns != NULL;
}

/* Adds to the slack a share of the largest magnitude in each sample's window. */
static bool allow_share(const struct operation *op, double share, const struct canvas *in,
                        struct canvas *out)
{
	const size_t count = canvas_samples(out);
	const double gain = fmax(1, op->gain), factor = share * gain, side = 2.0 * op->radius_x + 1;
	/* A kernel's sum may be this many times the largest magnitude in its window. */
	const double largest = op->kind == OPERATION_BILATERAL ? side * side : gain;
	double *window = malloc(count * sizeof *window);
	const bool found = window && rectangle_extremes((int)op->radius_x, (int)op->radius_y, true,
	                                                true, in, in->value, out, window);

	for (size_t k = 0; found && k < count; k++) {
		out->slack[k] += factor * window[k];
		if (window[k] * largest > FLT_MAX)
			out->value[k] = NAN;
	}
	free(window);
	return found;
}

/* Adds the tolerance of float results. Integer results have half a count instead. */
static bool allow_float(const struct operation *op, const struct scale *scale, double share,
                        const struct canvas *in, struct canvas *out)
{
	return scale->whole || allow_share(op, share, in, out);
}

/* Adds the tolerance of a Gaussian on a lattice, a share of the range of values: for plain integers
 * that of their type; for floats, which may be negative, twice as much. */
static bool allow_lattice(const struct operation *op, const struct scale *scale, bool plain,
                          const struct canvas *in, struct canvas *out)
{
	const bool known = plain && scale->whole;

	if (!op->lattice.stride)
		return true;
	for (size_t k = 0; known && k < canvas_samples(out); k++)
		out->slack[k] += LATTICE_ERROR * scale->full * fmax(1, op->gain);
	return known || allow_share(op, scale->whole ? LATTICE_ERROR : 2 * LATTICE_ERROR, in, out);
}

/* Adds to the slack a share of the magnitudes that are added. */
static bool allow_terms(struct taps *t, const struct canvas *in, struct canvas *out)
{
	const size_t count = canvas_samples(in);
	double *magnitudes = malloc(count * sizeof *magnitudes);
	double *sums = calloc(canvas_samples(out), sizeof *sums);
	bool done = magnitudes && sums;

	if (done)
		rows_magnitude(magnitudes, in->value, count);
	t->limited = true;
	done = done && correlate(t, true, in, magnitudes, out, sums);
	for (size_t k = 0; done && k < canvas_samples(out); k++) {
		out->slack[k] += FLOAT_TOLERANCE * sums[k];
		if (!(sums[k] <= FLT_MAX))
			out->value[k] = NAN;
	}
	free(magnitudes);
	free(sums);
	return done;
}

/* Multiplies colours by alpha; copies alpha. */
static bool premultiply(const struct canvas *in, struct canvas *product)
{
	const bool made = canvas_init(product, &in->at, in->bands);

	for (size_t i = 0; made && i < canvas_samples(in); i += in->bands) {
		size_t last = i + in->bands - 1;
		double a = in->value[last], sa = in->slack[last];

		for (size_t k = i; k < last; k++) {
			double c = in->value[k], sc = in->slack[k];

			product->value[k] = fabs(c * a) > FLT_MAX ? NAN : c * a;
			product->slack[k] = fabs(c) * sa + fabs(a) * sc + sa * sc;
		}
		product->value[last] = a;
		product->slack[last] = sa;
	}
	product->exact = in->exact;
	return made;
}

/* Divides sums of colours by alpha's. terms: for each sample, the sum of its terms' magnitudes. */
static void unpremultiply(const struct scale *scale, struct canvas *out, const double *terms)
{
	double share = scale->whole ? FLOAT_NOISE : FLOAT_TOLERANCE;

	for (size_t i = 0; i < canvas_samples(out); i += out->bands) {
		size_t last = i + out->bands - 1;
		double alpha = out->value[last], whole = out->slack[last] + share * terms[last];

		for (size_t k = i; k < last; k++) {
			const double part = out->slack[k] + share * terms[k];

			out->value[k] = alpha > 0 ? out->value[k] / alpha : 0;
			out->slack[k] = 0;
			if (!(fabs(alpha) > whole))
				out->slack[k] = whole > 0 ? SLACK_UNLIMITED : 0;
			else if (alpha > 0)
				out->slack[k] =
				    (part + fabs(out->value[k]) * whole) / (alpha - whole);
		}
		for (size_t k = i; k <= last; k++)
			if (!(terms[k] <= FLT_MAX))
				out->value[k] = NAN;
		if (!scale->whole)
			out->slack[last] = whole;
	}
}

static bool linear(const struct operation *op, const struct scale *scale, const struct canvas *in,
                   struct canvas *out)
{
	struct taps taps = {.radius_x = (int)op->radius_x, .radius_y = (int)op->radius_y};
	struct canvas product;
	double *terms;
	bool done;

	if (op->kind == OPERATION_RESIZE) {
		taps.across = &op->across;
		taps.down = &op->down;
	} else if (op->kind == OPERATION_PIXELATE) {
		taps.blocks = scale->image;
	} else if (op->kind == OPERATION_MATRIX) {
		taps.matrix = op->coefficients;
	} else {
		taps.row = op->coefficients;
		taps.column = op->coefficients + 2 * op->radius_x + 1;
	}
	if (!scale->alpha_weighted && taps.across)
		return correlate_both(&taps, in, out) &&
		       (scale->whole || allow_terms(&taps, in, out));
	if (!scale->alpha_weighted)
		return correlate_both(&taps, in, out) && allow_lattice(op, scale, true, in, out) &&
		       allow_float(op, scale, FLOAT_TOLERANCE, in, out);
	terms = malloc(canvas_samples(out) * sizeof *terms);
	done = premultiply(in, &product) && terms && correlate_both(&taps, &product, out) &&
	       allow_lattice(op, scale, false, &product, out);
	for (size_t k = 0; done && k < canvas_samples(&product); k++)
		product.value[k] = fabs(product.value[k]);
	taps.limited = true;
	done = done && correlate(&taps, true, &product, product.value, out, terms);
	if (done)
		unpremultiply(scale, out, terms);
	free(terms);
	canvas_fini(&product);
	return done;
}

/* An error beyond a gradient's length allows any direction: the slack is half the circle. */
static bool gradient(const struct operation *op, const struct scale *scale, const struct canvas *in,
                     struct canvas *out)
{
	const bool direction = op->output == GRADIENT_DIRECTION;
	const double circle = scale->integers ? scale->full : 2 * M_PI;
	double across[9], down[9];
	struct taps tx = {.radius_x = 1, .radius_y = 1, .matrix = across, .sparse = true}, ty = tx;
	struct canvas y;
	bool done;

	for (int i = 0; i < 9; i++) {
		const int row = i / 3, column = i % 3;

		across[i] = op->coefficients[row] * (column - 1);
		down[i] = op->coefficients[column] * (row - 1);
	}
	ty.matrix = down;
	done = canvas_init(&y, &out->at, out->bands) && correlate_both(&tx, in, out) &&
	       correlate_both(&ty, in, &y) &&
	       (!direction || allow_float(op, scale, FLOAT_NOISE, in, out));
	for (size_t k = 0; done && k < canvas_samples(out); k++) {
		const double gx = out->value[k], gy = y.value[k];

		if (direction) {
			const double length = hypot(gx, gy), off = hypot(out->slack[k], y.slack[k]);
			const double arc = off <= 0 ? 0 : off < length ? asin(off / length) : M_PI;
			/* no negative zeros: (0, 0) is 0 */
			const double angle = atan2(gy + 0.0, gx + 0.0);

			out->value[k] =
			    angle / (2 * M_PI) * circle + (scale->integers ? scale->full / 2 : 0);
			out->slack[k] = arc / (2 * M_PI) * circle +
			                (scale->whole ? 0 : FLOAT_TOLERANCE * circle / 2);
		} else if (op->output == GRADIENT_Y) {
			out->value[k] = gy;
			out->slack[k] = y.slack[k];
		} else if (op->output == GRADIENT_MAGNITUDE) {
			out->value[k] = sqrt(gx * gx + gy * gy);
			out->slack[k] =
			    sqrt(out->slack[k] * out->slack[k] + y.slack[k] * y.slack[k]);
		}
	}
	canvas_fini(&y);
	return done && (direction || allow_float(op, scale, FLOAT_TOLERANCE, in, out));
}

/* *out and *slack are those of the blurred sample, and receive the result's. */
static void sharpen(const struct operation *op, const struct scale *scale, double in,
                    double in_slack, double *out, double *slack)
{
	double d = in - *out, off = in_slack + *slack;
	double doubt = fabs(fabs(d) - op->threshold * scale->full);
	bool flat = fabs(d) < op->threshold * scale->full;

	*out = fabs(d) > FLT_MAX ? NAN : flat ? in : in + op->amount * d;
	if (op->threshold > 0 && doubt <= off + FLOAT_TOLERANCE * fmax(scale->full, fabs(in)))
		off += fabs(d);
	else if (flat)
		off = 0;
	*slack = in_slack + op->amount * off;
}

/* Makes full scale where `in` exceeds *out, which receives the result, by more than the threshold,
 * else 0. The slack is 0 or all. */
static void cut(const struct operation *op, const struct scale *scale, double in, double in_slack,
                double *out, double *slack)
{
	const double noise = scale->whole ? 2 * FLOAT_NOISE * scale->full : 0;
	const double limit = op->threshold * scale->full;
	double low = *out - *slack - noise, high = *out + *slack + noise;

	if (scale->whole) {
		*out = rint(*out);
		low = rint(low);
		high = rint(high);
	}
	*slack = (in - in_slack - high > limit) == (in + in_slack - low > limit) ? 0 : scale->full;
	if (!isfinite(*out)) /* perhaps only of a float32 */
		*slack = scale->full;
	*out = in - *out > limit ? scale->full : 0;
}

static struct sample threshold(const struct operation *op, const struct scale *scale, uint32_t band,
                               const struct sample *in)
{
	const double limit = op->limit[band] * scale->full;

	return (struct sample){in->value > limit ? scale->full : 0,
	                       in->slack > 0 && fabs(in->value - limit) <= in->slack ? scale->full
	                                                                             : 0};
}

static bool compare_with_blur(const struct operation *op, const struct scale *scale,
                              const struct canvas *in, struct canvas *out)
{
	const bool alpha_weighted = scale->alpha_weighted;
	struct operation blur = *op;
	uint32_t colours = out->bands - alpha_weighted;

	blur.gain = 1;
	if (!linear(&blur, scale, in, out))
		return false;
	for (size_t i = 0; i < canvas_samples(out); i += out->bands) {
		int x = out->at.x + (int)(i / out->bands % out->at.width);
		int y = out->at.y + (int)(i / out->bands / out->at.width);
		size_t from = canvas_index(in, x, y);

		for (uint32_t b = 0; b < colours; b++) {
			double value = in->value[from + b];

			if (alpha_weighted && out->value[i + colours] <= 0)
				out->value[i + b] = value;
			(op->kind == OPERATION_UNSHARP ? sharpen : cut)(
			    op, scale, value, in->slack[from + b], &out->value[i + b],
			    &out->slack[i + b]);
		}
	}
	return true;
}

/* Subtracts a canvas that extends at least as far, or (reversed) the other way round. */
static void subtract(struct canvas *out, const struct canvas *less, bool reversed)
{
	const size_t span = (size_t)out->at.width * out->bands;

	for (uint32_t y = 0; y < out->at.height; y++) {
		const size_t from = canvas_index(less, out->at.x, out->at.y + (int)y);
		double *value = out->value + y * span, *slack = out->slack + y * span;

		for (size_t k = 0; k < span; k++) {
			const double difference = value[k] - less->value[from + k];

			value[k] = reversed ? -difference : difference;
			slack[k] += less->slack[from + k];
		}
	}
}

static bool dog(const struct operation *op, const struct scale *scale, const struct canvas *in,
                struct canvas *out)
{
	const double *g1 = op->coefficients, *g2 = g1 + 2 * op->radius_x + 1;
	const int r = (int)op->radius_x;
	const struct taps first = {.radius_x = r, .radius_y = r, .row = g1, .column = g1};
	const struct taps second = {.radius_x = r, .radius_y = r, .row = g2, .column = g2};
	struct canvas less;
	const bool done = canvas_init(&less, &out->at, out->bands) &&
	                  correlate_both(&first, in, out) && correlate_both(&second, in, &less);

	if (done)
		subtract(out, &less, false);
	canvas_fini(&less);
	return done && allow_float(op, scale, FLOAT_TOLERANCE, in, out);
}

/* Returns the result for the value t in the curve's own scale. */
static double curve_at(const struct curve *c, double full, double t)
{
	t = t < c->low ? c->low : t > c->high ? c->high : t; /* or NaN */
	return full * (c->scale * (c->exponent == 1 ? t : pow(t, c->exponent)) + c->shift);
}

/* Curves go only up or only down: a sample that may be off is between the results of both ends.
 * A number too small for a float may count as 0. */
static struct sample curve(const struct operation *op, const struct scale *scale, uint32_t band,
                           const struct sample *in)
{
	const struct curve *c = &op->curve;
	const double share = scale->whole ? 2 * FLOAT_NOISE : FLOAT_TOLERANCE;
	const double gain = c->gain[op->by_band ? band : 0];
	const double bias = c->bias[op->by_band ? band : 0];
	const double x = in->value / scale->full, most = fabs(gain * x);
	const double t = gain * x + bias;
	const double off =
	    fabs(gain) * in->slack / scale->full + FLT_MIN + (most + fabs(bias)) * FLT_EPSILON;
	const double value = curve_at(c, scale->full, t);

	if (!isfinite(t) || !(fabs(value) <= FLT_MAX))
		return (struct sample){fabs(value) <= FLT_MAX ? value : value * INFINITY,
		                       SLACK_UNLIMITED};
	return (struct sample){
	    value, fmax(fabs(curve_at(c, scale->full, t - off) - value),
	                fabs(curve_at(c, scale->full, t + off) - value)) +
	               share * (fabs(value) + (scale->whole ? 0 : most * fabs(c->scale)))};
}

/* Applies operations on samples alone. Results for unfiltered bytes are kept, because there are
 * fewer values than samples. */
static bool each_sample(const struct operation *op, const struct scale *scale,
                        const struct canvas *in, struct canvas *out)
{
	const size_t span = (size_t)out->at.width * out->bands;
	const bool keeps = in->exact && scale->whole && scale->full <= UINT8_MAX;
	struct sample (*apply)(const struct operation *, const struct scale *, uint32_t band,
	                       const struct sample *) = op->kind == OPERATION_CURVE ? curve
	                                                : op->kind == OPERATION_LUT ? lookup_lut
	                                                                            : threshold;
	struct kept {
		struct sample sample;
		bool known;
	} *kept = keeps ? calloc(((size_t)scale->full + 1) * out->bands, sizeof *kept) : NULL;

	for (uint32_t y = 0; y < out->at.height && (kept || !keeps); y++) {
		const size_t from = canvas_index(in, out->at.x, out->at.y + (int)y);

		for (size_t k = 0; k < span; k++) {
			const uint32_t band = (uint32_t)(k % out->bands);
			const struct sample is = {in->value[from + k], in->slack[from + k]};
			struct kept this = {.known = false}, *at = &this;

			if (kept)
				at = &kept[(size_t)is.value * out->bands + band];
			if (!at->known)
				*at = (struct kept){apply(op, scale, band, &is), true};
			out->value[y * span + k] = at->sample.value;
			out->slack[y * span + k] = at->sample.slack;
		}
	}
	free(kept);
	return kept || !keeps;
}

/* Reads a plane of the whole image, which is repeated beyond it, or of its middle. */
static bool edges(const struct operation *op, const struct scale *scale, const struct canvas *,
                  struct canvas *out)
{
	const int width = (int)op->plane_width, height = (int)op->plane_height;
	const int left = ((int)scale->image->width - width) / 2;
	const int top = ((int)scale->image->height - height) / 2;

	for (size_t i = 0; i < canvas_samples(out); i++) {
		const int x = out->at.x + (int)(i / out->bands % out->at.width) - left;
		const int y = out->at.y + (int)(i / out->bands / out->at.width) - top;
		const bool edge =
		    edges_at(op->plane, op->plane_width, (uint32_t)((x % width + width) % width),
		             (uint32_t)((y % height + height) % height));

		out->value[i] = edge ? scale->full : 0;
		out->slack[i] = 0;
	}
	return true;
}

/* Applies to all bands. A single colour counts as three; alpha is the fourth, opaque if missing. */
static bool mix(const struct operation *op, const struct scale *scale, const struct canvas *in,
                struct canvas *out)
{
	const uint32_t bands = out->bands, colours = bands - scale->image->alpha;

	for (size_t i = 0; i < canvas_samples(out); i += bands) {
		const int x = out->at.x + (int)(i / bands % out->at.width);
		const int y = out->at.y + (int)(i / bands / out->at.width);
		const size_t first = canvas_index(in, x, y);
		double v[BANDS_MAX], off[BANDS_MAX];

		for (uint32_t j = 0; j < BANDS_MAX; j++) {
			const uint32_t colour = colours == 1 ? 0 : j;
			const uint32_t from = j < 3 ? colour : scale->image->alpha ? colours : j;

			v[j] = from < bands ? in->value[first + from] : j == 3 ? scale->full : 0;
			off[j] = from < bands ? in->slack[first + from] : 0;
		}
		for (uint32_t b = 0; b < bands; b++) {
			const double *c =
			    op->coefficients +
			    (size_t)(b < colours ? b : BANDS_MAX - 1) * (BANDS_MAX + 1);
			double value = c[BANDS_MAX] * scale->full, slack = 0;
			double magnitudes = fabs(c[BANDS_MAX]) * scale->full;

			for (int j = 0; j < BANDS_MAX; j++) {
				value += c[j] * v[j];
				slack += fabs(c[j]) * off[j];
				magnitudes += fabs(c[j] * v[j]);
			}
			slack += (scale->whole ? 0 : FLOAT_TOLERANCE) * magnitudes;
			out->value[i + b] = magnitudes <= FLT_MAX ? value : NAN;
			out->slack[i + b] = slack;
		}
	}
	return true;
}

/* Finds the extremes of `from`, laid out like the samples of `in`. Unless the window is a
 * rectangle, each source row is widened by one sample on either side at a time, and raises those
 * rows of the result whose windows have that width there. */
static bool find_extremes(const struct operation *op, bool largest, const struct canvas *in,
                          const double *from, const struct canvas *out, double *to)
{
	const int r = (int)op->radius_y, top = out->at.y, end = top + (int)out->at.height;
	const size_t span = (size_t)out->at.width * out->bands;
	double *wide;

	if (op->element == ELEMENT_RECTANGLE)
		return rectangle_extremes(r, r, largest, false, in, from, out, to);
	wide = malloc((span + 1) * sizeof *wide);
	if (!wide)
		return false;
	for (size_t k = 0; k < span * out->at.height; k++)
		to[k] = largest ? -INFINITY : NAN;
	for (int s = top - r; s < end + r; s++) {
		const double *row = from + canvas_index(in, out->at.x, s);

		memcpy(wide, row, span * sizeof *wide);
		for (int half = 0; half <= r; half++) {
			rows_extreme(wide, wide, row - (size_t)half * in->bands, largest, span);
			rows_extreme(wide, wide, row + (size_t)half * in->bands, largest, span);
			for (int y = s - r > top ? s - r : top; y <= s + r && y < end; y++) {
				double *raised = to + (size_t)(y - top) * span;

				if (element_half_width(s - y, r, (int)op->element) == half)
					rows_extreme(raised, raised, wide, largest, span);
			}
		}
	}
	free(wide);
	return true;
}

/* The error of the smallest is at most the largest error. */
static bool extreme(const struct operation *op, const struct scale *, const struct canvas *in,
                    struct canvas *out)
{
	return find_extremes(op, op->largest, in, in->value, out, out->value) &&
	       (in->exact || find_extremes(op, true, in, in->slack, out, out->slack));
}

/* Makes one extreme of the other, which may be smaller than the image or larger, or (gradient) the
 * largest less the smallest. */
static bool morphology(const struct operation *op, const struct scale *scale,
                       const struct canvas *in, struct canvas *out)
{
	const enum morphology what = op->morphology;
	const bool closes = what == MORPHOLOGY_CLOSE || what == MORPHOLOGY_BLACKHAT;
	const struct operation first = operation_extreme(op, closes);
	const struct operation second = operation_extreme(op, !closes);
	struct region at = out->at;
	struct canvas between;
	bool done;

	if (what != MORPHOLOGY_GRADIENT) {
		at.x -= (int)second.radius_x;
		at.y -= (int)second.radius_y;
		at.width += 2 * second.radius_x;
		at.height += 2 * second.radius_y;
	}
	done = canvas_init(&between, &at, out->bands) && extreme(&first, scale, in, &between);
	between.exact = in->exact;
	done = done && extreme(&second, scale, what == MORPHOLOGY_GRADIENT ? in : &between, out);
	if (done && what == MORPHOLOGY_GRADIENT)
		subtract(out, &between, false);
	if (done && (what == MORPHOLOGY_TOPHAT || what == MORPHOLOGY_BLACKHAT))
		subtract(out, in, !closes);
	canvas_fini(&between);
	return done;
}

/* Ranks are found in parts of the image, of one band each: their samples are numbered in their
 * order, and a histogram of the numbers follows the window along a row (Huang, Yang and Tang, "A
 * fast two-dimensional median filtering algorithm", 1979). */
enum {
	RANK_SIDE_MAX = 2 * 15 + 1,
	RANK_WIDTH = 256,
	RANK_HEIGHT = 64,
	RANK_SAMPLES = (RANK_WIDTH + RANK_SIDE_MAX) * (RANK_HEIGHT + RANK_SIDE_MAX),
};

struct keyed {
	uint64_t key;
	uint32_t place;
};

struct ranks {
	bool sorted;     /* numbers are places in `by_number`, else the samples themselves */
	unsigned levels; /* the histogram's */
	size_t nodes;    /* those that may be in use */
	/* Counts of the window's numbers that begin with the digits of each node of a tree, which
	 * has 16 branches; its levels lie one behind the other. */
	uint16_t count[16 + 256 + 4096 + 65536];
	uint16_t number[RANK_SAMPLES];
	double value[RANK_SAMPLES], by_number[RANK_SAMPLES];
	struct keyed keyed[2][RANK_SAMPLES];
};

static void count_value(struct ranks *h, unsigned value, int more)
{
	uint16_t *level = h->count;

	for (unsigned shift = 4 * h->levels, size = 16; shift; size *= 16) {
		shift -= 4;
		level[value >> shift] = (uint16_t)(level[value >> shift] + more);
		level += size;
	}
}

/* Numbers samples; integers of the image's type are numbers already. */
static void number_samples(struct ranks *h, const struct scale *scale, size_t samples)
{
	bool integers = scale->whole;
	struct keyed *from = h->keyed[0], *to = h->keyed[1];

	for (size_t k = 0; integers && k < samples; k++) {
		integers = h->value[k] >= 0 && h->value[k] <= scale->full;
		h->number[k] = integers ? (uint16_t)h->value[k] : 0;
	}
	h->sorted = !integers;
	h->levels = integers && scale->full <= UINT8_MAX ? 2 : 4;
	h->nodes = h->levels == 2 ? 16 + 256 : sizeof h->count / sizeof *h->count;
	if (integers)
		return;
	h->nodes = 16 + 256 + 4096 + samples;
	/* A key is larger for larger numbers, and the largest for NaN. */
	for (size_t k = 0; k < samples; k++) {
		uint64_t bits;

		memcpy(&bits, &h->value[k], sizeof bits);
		bits = bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
		h->keyed[0][k] =
		    (struct keyed){isnan(h->value[k]) ? UINT64_MAX : bits, (uint32_t)k};
	}
	/* Sorts by one byte after the other, the last one first; skips bytes that are all alike. */
	for (unsigned shift = 0; shift < 64; shift += 8) {
		uint32_t place[256] = {0}, before = 0;

		for (size_t k = 0; k < samples; k++)
			place[from[k].key >> shift & 255]++;
		if (place[from->key >> shift & 255] == samples)
			continue;
		for (int i = 0; i < 256; i++) {
			const uint32_t count = place[i];

			place[i] = before;
			before += count;
		}
		for (size_t k = 0; k < samples; k++)
			to[place[from[k].key >> shift & 255]++] = from[k];
		from = to;
		to = h->keyed[from == h->keyed[0]];
	}
	for (size_t k = 0; k < samples; k++) {
		h->number[from[k].place] = (uint16_t)k;
		h->by_number[k] = h->value[from[k].place];
	}
}

static void rank_part(const struct operation *op, const struct scale *scale, struct ranks *h,
                      const struct canvas *in, const struct region *part, uint32_t band,
                      const struct canvas *out)
{
	const int r = (int)op->radius_x, width = (int)part->width, height = (int)part->height;
	const int pitch = width + 2 * r, rows = height + 2 * r;
	int half[RANK_SIDE_MAX];

	for (int y = 0; y < rows; y++) {
		const double *from = in->value + canvas_index(in, part->x - r, part->y - r + y);

		for (int x = 0; x < pitch; x++)
			h->value[y * pitch + x] = from[(size_t)x * in->bands + band];
	}
	number_samples(h, scale, (size_t)pitch * (size_t)rows);
	for (int j = -r; j <= r; j++)
		half[j + r] = element_half_width(j, r, (int)op->element);
	for (int y = 0; y < height; y++) {
		double *to = out->value + canvas_index(out, part->x, part->y + y) + band;

		memset(h->count, 0, h->nodes * sizeof *h->count);
		for (int x = -2 * r; x < width; x++) {
			const uint16_t *level = h->count;
			uint32_t rank = op->rank;
			unsigned found = 0;

			for (int j = 0; j <= 2 * r; j++) {
				const uint16_t *at = h->number + (y + j) * pitch + r;

				if (x + half[j] >= -half[j])
					count_value(h, at[x + half[j]], 1);
				if (x - half[j] - 1 >= -half[j])
					count_value(h, at[x - half[j] - 1], -1);
			}
			if (x < 0)
				continue;
			/* Down the tree to the number of this rank. */
			for (unsigned i = 0, size = 16; i < h->levels; i++, size *= 16) {
				for (found *= 16; level[found] <= rank; found++)
					rank -= level[found];
				level += size;
			}
			to[(size_t)x * out->bands] = h->sorted ? h->by_number[found] : found;
		}
	}
}

/* The error is at most the largest one in the square around the window. */
static bool rank(const struct operation *op, const struct scale *scale, const struct canvas *in,
                 struct canvas *out)
{
	struct ranks *h = malloc(sizeof *h);
	const uint32_t width = out->at.width, height = out->at.height;

	for (uint32_t y = 0; h && y < height; y += RANK_HEIGHT)
		for (uint32_t x = 0; x < width; x += RANK_WIDTH) {
			const struct region part = {out->at.x + (int)x, out->at.y + (int)y,
			                            MIN(width - x, RANK_WIDTH),
			                            MIN(height - y, RANK_HEIGHT)};

			for (uint32_t band = 0; band < out->bands; band++)
				rank_part(op, scale, h, in, &part, band, out);
		}
	free(h);
	return h && (in->exact || rectangle_extremes((int)op->radius_x, (int)op->radius_y, true,
	                                             false, in, in->slack, out, out->slack));
}

bool operations_apply(const struct operation *op, const struct scale *scale,
                      const struct canvas *in, struct canvas *out)
{
	static operation_apply *const apply[] = {
	    [OPERATION_SEPARABLE] = linear,
	    [OPERATION_MATRIX] = linear,
	    [OPERATION_GRADIENT] = gradient,
	    [OPERATION_BILATERAL] = bilateral_apply,
	    [OPERATION_UNSHARP] = compare_with_blur,
	    [OPERATION_DOG] = dog,
	    [OPERATION_EXTREME] = extreme,
	    [OPERATION_MORPHOLOGY] = morphology,
	    [OPERATION_PIXELATE] = linear,
	    [OPERATION_CURVE] = each_sample,
	    [OPERATION_LUT] = each_sample,
	    [OPERATION_MIX] = mix,
	    [OPERATION_RANK] = rank,
	    [OPERATION_THRESHOLD] = each_sample,
	    [OPERATION_CANNY] = canny_apply,
	    [OPERATION_EDGES] = edges,
	    [OPERATION_CLAHE] = lookup_clahe,
	    [OPERATION_LOCAL_THRESHOLD] = compare_with_blur,
	    [OPERATION_RESIZE] = linear,
	};

	_Static_assert(sizeof apply / sizeof *apply == OPERATIONS, "each can be applied");
	return apply[op->kind](op, scale, in, out) &&
	       (op->kind != OPERATION_BILATERAL ||
	        allow_float(op, scale, FLOAT_TOLERANCE, in, out));
}
