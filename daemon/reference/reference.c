/* The reference for chains. It shares only border_map() and filter_lower() with the kernels.
 *
 * As on the devices (device/plan/plan.c), each filter works on the window enlarged by the radii of
 * the later ones, and pixels outside the image are made again in between; here the canvas shrinks
 * by a radius with every filter. With wrap, the outside is filtered like the inside, with the right
 * result; with crop, there is no outside.
 *
 * A filter's input holds only the bands that it changes, and alpha if that weights them; a filter
 * that treats bands differently gets all. LUMA means all colours and CHROMA none, unless there are
 * three colours. */
#include "reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "border.h"
#include "reference/apply.h"

/* The state of a chain between two filters. */
struct progress {
	const struct chain *chain;
	struct image image; /* that the next filter gets: a resize changes its size */
	struct geometry geometry;
	struct window window;
	struct scale scale;
	bool ycc; /* the colours, also the border's, are currently YCbCr, not rounded */
	double border_pixel[BANDS_MAX];
	uint32_t circular;
	struct canvas canvas;
};

/* Rounds values to the image's type, and enlarges the slack accordingly. */
VECTORISED static void round_samples(enum pixel_type type, double *restrict value,
                                     double *restrict slack, size_t count)
{
	const double full = pixel_type_rows[type].full_scale,
	             shift = 0x1.8p52; /* leaves no fraction */

	for (size_t k = 0; k < count; k++)
		slack[k] = slack[k] <= SLACK_UNLIMITED ? slack[k] : SLACK_UNLIMITED;
	for (size_t k = 0; type == PIXEL_F32 && k < count; k++) {
		value[k] = (float)value[k];
		slack[k] += fabs(value[k]) < HUGE_VAL ? fabs(value[k]) * 1e-7 : 0;
	}
	for (size_t k = 0; type != PIXEL_F32 && k < count; k++) {
		const double v = value[k] < 0 ? 0 : value[k] > full ? full : value[k];

		value[k] = v + shift - shift;
		slack[k] = slack[k] < full ? slack[k] : full;
		slack[k] = (int)(slack[k] + 0.5) + 1;
		slack[k] = slack[k] < full ? slack[k] : full;
	}
}

/* YCbCr of BT.601, full range, as in JPEG: converts the first three bands of a pixel, without
 * rounding. middle: Cb and Cr of grey. */
static void ycc_from_rgb(double *p, double middle)
{
	double y = 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
	double cb = (p[2] - y) / 1.772 + middle, cr = (p[0] - y) / 1.402 + middle;

	p[0] = y;
	p[1] = cb;
	p[2] = cr;
}

static void ycc_to_rgb(double *p, double middle)
{
	double red = p[0] + 1.402 * (p[2] - middle), blue = p[0] + 1.772 * (p[1] - middle);

	p[1] = (p[0] - 0.299 * red - 0.114 * blue) / 0.587;
	p[0] = red;
	p[2] = blue;
}

/* Converts all pixels and their slack, to which it adds the loss of float32; `factor`: the maximum
 * over samples of the sum of the coefficients' magnitudes. */
static void convert_pixels(struct progress *p, void (*convert)(double *, double), double factor)
{
	const double middle = pixel_type_rows[p->image.type].midpoint;
	struct canvas *c = &p->canvas;

	for (size_t i = 0; i < canvas_samples(c); i += c->bands) {
		double *v = &c->value[i], *s = &c->slack[i];
		const double noise = FLOAT_NOISE * (fabs(v[0]) + fabs(v[1]) + fabs(v[2]));
		const double slack =
		    factor * fmax(s[0], fmax(s[1], s[2])) + (isfinite(noise) ? noise : 0);

		convert(v, middle);
		for (size_t b = 0; b < 3; b++)
			s[b] = slack;
	}
	c->exact = false;
	convert(p->border_pixel, middle);
}

/* Converts back to RGB and rounds; also the constant border. */
static void leave_ycc(struct progress *p)
{
	struct canvas *c = &p->canvas;
	double slack[3] = {0};

	if (!p->ycc)
		return;
	convert_pixels(p, ycc_to_rgb, 1 + 1.772);
	for (size_t i = 0; i < canvas_samples(c); i += c->bands)
		round_samples(p->image.type, &c->value[i], &c->slack[i], 3);
	p->ycc = false;
	p->scale.whole = p->image.type != PIXEL_F32;
	round_samples(p->image.type, p->border_pixel, slack, 3);
}

/* A bit for each band that a call changes. */
static uint32_t channels_changed(const struct image *image, const struct filter_call *call,
                                 bool filters_alpha)
{
	const uint32_t colours = image->bands - image->alpha, colour = (1u << colours) - 1;
	const uint32_t all = (1u << image->bands) - 1;
	const uint32_t changed[CHANNELS] = {
	    [CHANNELS_ALL] = filters_alpha ? all : colour,
	    [CHANNELS_COLOR] = colour,
	    [CHANNELS_ALPHA] = all & ~colour,
	    [CHANNELS_RED] = colour & 1,
	    [CHANNELS_GREEN] = colour & 2,
	    [CHANNELS_BLUE] = colour & 4,
	    [CHANNELS_LUMA] = colours == 3 ? 1 : colour,
	    [CHANNELS_CHROMA] = colours == 3 ? 6 : 0,
	};

	return changed[call->channels];
}

/* Copies the bands whose bits are set in `copied`, in a region that is inside both canvases. The
 * bits of `held` and `wanted` tell the canvases' bands. */
static void copy_bands(const struct region *at, uint32_t copied, const struct canvas *from,
                       uint32_t held, struct canvas *to, uint32_t wanted)
{
	for (int y = at->y; y < at->y + (int)at->height; y++)
		for (int x = at->x; x < at->x + (int)at->width; x++) {
			size_t i = canvas_index(from, x, y), k = canvas_index(to, x, y);

			for (uint32_t band = 1; band <= copied; band <<= 1) {
				if (copied & band) {
					to->value[k] = from->value[i];
					to->slack[k] = from->slack[i];
				}
				i += (held & band) != 0;
				k += (wanted & band) != 0;
			}
		}
}

/* The part of a region that is inside the image. */
static struct region inside(const struct region *a, const struct image *image)
{
	const int x0 = MAX(a->x, 0), x1 = MIN(a->x + (int)a->width, (int)image->width);
	const int y0 = MAX(a->y, 0), y1 = MIN(a->y + (int)a->height, (int)image->height);

	return (struct region){x0, y0, (uint32_t)(x1 - x0), (uint32_t)(y1 - y0)};
}

/* Fills the pixels outside the image from those inside; `made`: the part already computed. */
static void extend(const struct progress *p, const struct region *made, struct canvas *c)
{
	int mode = (int)p->chain->border, end = c->at.y + (int)c->at.height;
	bool constant = p->chain->border == BORDER_CONSTANT;

	for (int y = c->at.y; y < end; y++)
		for (int x = c->at.x; x < c->at.x + (int)c->at.width; x++) {
			size_t to, from;

			if (x == made->x && y >= made->y && y < made->y + (int)made->height)
				x += (int)made->width;
			if (x == c->at.x + (int)c->at.width)
				break;
			to = from = canvas_index(c, x, y);
			if (!constant)
				from = canvas_index(c, border_map(x, (int)p->image.width, mode),
				                    border_map(y, (int)p->image.height, mode));
			for (uint32_t b = 0; b < c->bands; b++) {
				c->value[to + b] =
				    constant ? p->border_pixel[b] : c->value[from + b];
				c->slack[to + b] = constant ? 0 : c->slack[from + b];
			}
		}
}

static bool is_inside(const struct image *image, int x, int y)
{
	return x >= 0 && y >= 0 && x < (int)image->width && y < (int)image->height;
}

/* Makes the pixels outside the image by the border rule. origin: the image's first pixel. */
static void load_outside(const struct progress *p, const uint8_t *origin, size_t pitch)
{
	const struct canvas *c = &p->canvas;
	const int width = (int)p->image.width, height = (int)p->image.height;
	const int mode = (int)p->chain->border, end = c->at.y + (int)c->at.height;
	const enum pixel_type type = (enum pixel_type)p->image.type;

	for (int y = c->at.y; y < end; y++)
		for (int x = c->at.x; x < c->at.x + (int)c->at.width; x++) {
			double *to = c->value + canvas_index(c, x, y);
			const uint8_t *row = origin;
			size_t from = 0;

			if (is_inside(&p->image, x, y))
				continue;
			if (mode != BORDER_CONSTANT) {
				row += (size_t)border_map(y, height, mode) * pitch;
				from = (size_t)border_map(x, width, mode) * c->bands;
			}
			for (uint32_t b = 0; b < c->bands; b++)
				to[b] = mode != BORDER_CONSTANT
				            ? image_get_sample(row, from + b, type)
				        : type == PIXEL_F32
				            ? (float)p->border_pixel[b] /* as what is read */
				            : p->border_pixel[b];
		}
}

/* Reads the window and the halo around it. Pixels outside the image are read, too, if `padded`, and
 * else made by the border rule. */
static bool load(struct progress *p, const struct window *w, const void *pixels, size_t pitch,
                 bool padded)
{
	const struct geometry *g = &p->geometry;
	const struct extent x = geometry_source(g, 0, w->x0, w->width),
	                    y = geometry_source(g, 1, w->y0, w->height);
	const struct region at = {x.first - (int)g->halo[0], y.first - (int)g->halo[1],
	                          x.count + 2 * g->halo[0], y.count + 2 * g->halo[1]};
	const struct region there = padded ? at : inside(&at, &p->image);
	struct canvas *c = &p->canvas;

	if (!canvas_init(c, &at, p->image.bands))
		return false;
	c->exact = true;
	for (int row = there.y; row < there.y + (int)there.height; row++)
		rows_load(c->value + canvas_index(c, there.x, row),
		          (const uint8_t *)pixels + (row - y.first) * (ptrdiff_t)pitch +
		              (there.x - x.first) * (ptrdiff_t)image_pixel_size(&p->image),
		          p->image.type, (size_t)there.width * c->bands);
	if (!padded)
		load_outside(p,
		             (const uint8_t *)pixels - y.first * (ptrdiff_t)pitch -
		                 x.first * (ptrdiff_t)image_pixel_size(&p->image),
		             pitch);
	return true;
}

/* Filters the bands that a call changes, and keeps the others, on the part `made` of `out`. Adds
 * the offset, except to an alpha that weights other bands and to colours without alpha; then
 * rounds. */
static bool filter_bands(const struct progress *p, const struct filter_call *call,
                         const struct operation *op, const struct region *made, struct canvas *out)
{
	const bool keeps_alpha = op->by_band && !op->makes_alpha && p->image.alpha;
	const double offset =
	    op->offset + (op->signed_output ? pixel_type_rows[p->image.type].midpoint : 0);
	const double slack = p->scale.whole ? 0 : FLOAT_TOLERANCE * fabs(offset);
	uint32_t all = (1u << p->image.bands) - 1;
	uint32_t bands = channels_changed(&p->image, call, op->smoothing || op->makes_alpha) &
	                 (keeps_alpha ? all >> 1 : all);
	struct scale scale = p->scale;
	uint32_t seen = bands, colours;
	const bool whole = bands == all && !memcmp(made, &out->at, sizeof *made);
	struct canvas from = {0}, part = {0}, *to = whole ? out : &part;
	bool done = true;

	if (bands != all)
		copy_bands(made, all & ~bands, &p->canvas, all, out, all);
	if (!bands)
		return true;
	/* Alpha alone, a single colour, luma and chroma are filtered as plain samples. */
	scale.alpha_weighted =
	    p->image.alpha &&
	    (call->channels == CHANNELS_ALL || call->channels == CHANNELS_COLOR) &&
	    (op->smoothing || operation_compares(op->kind));
	if (op->by_band)
		seen = all;
	else if (scale.alpha_weighted)
		seen |= 1u << (p->image.bands - 1);
	if (seen != all) {
		done = canvas_init(&from, &p->canvas.at, (uint32_t)__builtin_popcount(seen));
		from.exact = p->canvas.exact;
		if (done)
			copy_bands(&from.at, seen, &p->canvas, all, &from, seen);
	}
	done = done && (whole || canvas_init(to, made, (uint32_t)__builtin_popcount(seen))) &&
	       operations_apply(op, &scale, seen == all ? &p->canvas : &from, to);
	colours = to->bands - scale.alpha_weighted;
	for (size_t i = 0; done && (offset != 0 || slack > 0) && i < canvas_samples(to);
	     i += to->bands)
		for (uint32_t b = 0; b < colours; b++) {
			if (!(scale.alpha_weighted && to->value[i + colours] <= 0))
				to->value[i + b] += offset;
			to->slack[i + b] += slack;
		}
	if (done && !p->ycc)
		round_samples(p->image.type, to->value, to->slack, canvas_samples(to));
	if (done && !whole)
		copy_bands(made, bands, to, seen, out, all);
	canvas_fini(&from);
	canvas_fini(&part);
	return done;
}

static enum error apply(struct progress *p, uint32_t i)
{
	const struct filter_call *call = &p->chain->call[i];
	const bool in_ycc = p->image.bands - p->image.alpha == 3 &&
	                    (call->channels == CHANNELS_LUMA || call->channels == CHANNELS_CHROMA);
	const bool open = p->chain->border == BORDER_WRAP || p->chain->border == BORDER_CROP;
	const bool whole = p->image.type != PIXEL_F32;
	const double max = whole ? p->scale.full : M_PI, min = whole ? 0 : -M_PI;
	const struct geometry *g = &p->geometry;
	struct region at = p->canvas.at, made;
	struct operation op;
	struct canvas out;
	uint32_t bands;
	enum error e;

	if (in_ycc && !p->ycc) {
		convert_pixels(p, ycc_from_rgb, 1);
		p->ycc = true;
		p->scale.whole = false;
	} else if (!in_ycc) {
		leave_ycc(p);
	}
	e = filter_lower(call, p->chain->coefficient, &op);
	if (e)
		return e;
	at.x += (int)op.radius_x;
	at.y += (int)op.radius_y;
	at.width -= 2 * op.radius_x;
	at.height -= 2 * op.radius_y;
	if (op.kind == OPERATION_RESIZE) {
		at = (struct region){
		    (int)p->window.x0 - (int)g->after[0], (int)p->window.y0 - (int)g->after[1],
		    p->window.width + 2 * g->after[0], p->window.height + 2 * g->after[1]};
		op.across = g->scale[0];
		op.down = g->scale[1];
		p->image.width = op.across.to;
		p->image.height = op.down.to;
	}
	made = open ? at : inside(&at, &p->image);
	if (!canvas_init(&out, &at, p->image.bands) || !filter_bands(p, call, &op, &made, &out))
		e = ERR_MEMORY;
	if (!e && op.kind == OPERATION_GRADIENT && op.output == GRADIENT_DIRECTION) {
		bands = channels_changed(&p->image, call, false);
		if (i + 1 == p->chain->count && !p->ycc)
			p->circular = bands;
		/* Within its slack of one end of the range, a sample may be at the other end. More
		 * filters may follow, so the slack covers both. */
		for (size_t k = 0; !p->circular && k < canvas_samples(&out); k++)
			if (bands >> k % out.bands & 1 && (out.value[k] - out.slack[k] < min ||
			                                   out.value[k] + out.slack[k] > max))
				out.slack[k] = max - min;
	}
	if (!e)
		extend(p, &made, &out);
	canvas_fini(&p->canvas);
	p->canvas = out;
	operation_fini(&op);
	return e;
}

void reference_mix(const struct image *image, uint32_t circular, double weight,
                   const double *original, double *value, double *slack)
{
	const uint32_t bands = image->bands, colours = bands - image->alpha;
	double share = weight, doubt = FLOAT_NOISE * 4, alpha = 0, a = 0;

	if (image->alpha) {
		a = (1 - weight) * original[colours];
		alpha = a + weight * value[colours];
	}
	if (alpha > 0) {
		double off =
		    weight * slack[colours] + FLOAT_NOISE * 4 * (fabs(a) + fabs(alpha - a));

		share = 1 - a / alpha;
		doubt +=
		    off < alpha ? 2 * off * fmax(1, fabs(share)) / (alpha - off) : SLACK_UNLIMITED;
	} else if (image->alpha) {
		doubt = SLACK_UNLIMITED;
	}
	for (uint32_t b = 0; b < bands; b++) {
		double s = b < colours ? share : weight, d = b < colours ? doubt : FLOAT_NOISE * 4;

		slack[b] = fabs(s) * slack[b] + d * (fabs(value[b]) + fabs(original[b]) + slack[b]);
		if (circular >> b & 1) /* it may be at either end of the range before */
			slack[b] = SLACK_UNLIMITED;
		value[b] = (1 - s) * original[b] + s * value[b];
	}
	round_samples(image->type, value, slack, bands);
}

/* Outside the regions the original pixels stay. pixels: as for reference_window(). */
static void blend(struct progress *p, const void *pixels, size_t pitch)
{
	const struct regions *regions = &p->chain->regions;
	const struct region made = inside(&p->canvas.at, &p->image);
	struct canvas *c = &p->canvas;

	leave_ycc(p);

	for (size_t i = 0; regions->count && i < canvas_samples(c); i += c->bands) {
		const uint32_t x = (uint32_t)(i / c->bands % c->at.width);
		const uint32_t y = (uint32_t)(i / c->bands / c->at.width);
		const double weight = regions_weight(regions, chain_shapes(p->chain),
		                                     c->at.x + (int)x, c->at.y + (int)y);
		double original[BANDS_MAX];

		if (p->geometry.resizes &&
		    !is_inside(&p->image, c->at.x + (int)x, c->at.y + (int)y))
			continue; /* made again below */
		for (uint32_t b = 0; b < c->bands; b++)
			original[b] = image_get_sample((const uint8_t *)pixels + y * pitch,
			                               x * c->bands + b, p->image.type);
		for (uint32_t b = 0; weight <= 0 && b < c->bands; b++) {
			c->value[i + b] = original[b];
			c->slack[i + b] = 0;
		}
		if (weight > 0 && weight < 1)
			reference_mix(&p->image, p->circular, weight, original, &c->value[i],
			              &c->slack[i]);
	}
	if (regions->count && p->geometry.resizes && !p->geometry.wraps)
		extend(p, &made, c);
}

/* padded: the halo lies around the window, also outside the image. */
static enum error run(const struct chain *chain, const struct image *image,
                      const struct window *window, const void *pixels, size_t pitch, bool padded,
                      struct reference *r)
{
	struct progress p = {.chain = chain, .image = *image, .window = *window};
	const uint32_t resizing = chain_resizing(chain);
	size_t count = 0;
	enum error e = chain_border_pixel(chain, image, p.border_pixel, NULL);

	*r = (struct reference){.window = *window};
	p.scale.image = &p.image;
	if (!e)
		e = chain_geometry(chain, image, &p.geometry, NULL);
	p.scale.full = pixel_type_rows[image->type].full_scale;
	p.scale.whole = p.scale.integers = image->type != PIXEL_F32;
	if (!e && !load(&p, window, pixels, pitch, padded))
		e = ERR_MEMORY;
	for (uint32_t i = 0; !e && i < chain->count; i++) {
		if (i == resizing)
			blend(&p, pixels, pitch);
		e = apply(&p, i);
	}
	if (!e) {
		leave_ycc(&p);
		if (!p.geometry.resizes)
			blend(&p, pixels, pitch);
		count = canvas_samples(&p.canvas);
		r->bands = image->bands;
		r->type = image->type;
		r->circular = p.circular;
		r->pixels = malloc(count * pixel_type_rows[image->type].size);
		r->slack = malloc(count * sizeof *r->slack);
		e = r->pixels && r->slack ? ERR_OK : ERR_MEMORY;
	}
	if (!e)
		rows_store(r->pixels, p.canvas.value, image->type, count);
	for (size_t i = 0; !e && i < count; i++)
		r->slack[i] = (float)(p.canvas.slack[i] * (1 + 1e-6)); /* rounded up */
	if (e)
		reference_fini(r);
	canvas_fini(&p.canvas);
	return e;
}

enum error reference_window(const struct chain *chain, const struct image *image,
                            const struct window *window, const void *pixels, size_t pitch,
                            struct reference *r)
{
	return run(chain, image, window, pixels, pitch, true, r);
}

enum error reference_filter(const struct chain *chain, const struct image *image, const void *in,
                            struct reference *r)
{
	const size_t pitch = image_row_size(image);
	struct window window;
	struct geometry g;
	enum error e = chain_geometry(chain, image, &g, NULL);
	ptrdiff_t first; /* the source's first byte, perhaps outside the image */

	*r = (struct reference){0};
	if (e)
		return e;
	window = (struct window){g.crop[0], g.crop[1], g.size[0], g.size[1]};
	first = geometry_source(&g, 1, window.y0, window.height).first * (ptrdiff_t)pitch +
	        geometry_source(&g, 0, window.x0, window.width).first *
	            (ptrdiff_t)image_pixel_size(image);
	return run(chain, image, &window, (const uint8_t *)in + first, pitch, false, r);
}

void reference_fini(struct reference *r)
{
	free(r->pixels);
	free(r->slack);
	r->pixels = NULL;
	r->slack = NULL;
}

/* The cost per sample of one filter, and of a term of its operation_terms(), of the slowest kind,
 * in units. bench_reference measures them, and fails if they no longer fit. */
static double call_cost(const struct filter_call *call, const struct image *image,
                        uint32_t radius_x, uint32_t radius_y)
{
	static const struct {
		double sample, term;
	} costs[OPERATIONS] = {
	    [OPERATION_SEPARABLE] = {12, 0.25}, [OPERATION_MATRIX] = {10, 0.3},
	    [OPERATION_GRADIENT] = {40, 0},     [OPERATION_BILATERAL] = {10, 0.3},
	    [OPERATION_EXTREME] = {10, 0.7},    [OPERATION_MORPHOLOGY] = {20, 0.7},
	    [OPERATION_THRESHOLD] = {20, 0.3},  [OPERATION_LOCAL_THRESHOLD] = {80, 0.3},
	    [OPERATION_UNSHARP] = {35, 0.3},    [OPERATION_DOG] = {30, 0.3},
	    [OPERATION_CURVE] = {200, 0},       [OPERATION_LUT] = {170, 0},
	    [OPERATION_MIX] = {45, 0},          [OPERATION_CANNY] = {430, 0},
	    [OPERATION_EDGES] = {20, 0},        [OPERATION_CLAHE] = {350, 0},
	    [OPERATION_PIXELATE] = {30, 0},
	};
	const enum operation_kind kind = filter_call_operation(call);
	const bool bytes = image->type == PIXEL_U8;

	_Static_assert((int)SOBEL_OUTPUT == (int)SCHARR_OUTPUT &&
	                   (int)SOBEL_OUTPUT == (int)PREWITT_OUTPUT,
	               "gradients have the same parameters");
	if (kind == OPERATION_RANK) /* each row of the window is a step in a tree */
		return (bytes ? 1 : 2) * (120 + 11 * (2.0 * radius_x + 1));
	if (kind == OPERATION_GRADIENT && call->value[SOBEL_OUTPUT] == GRADIENT_DIRECTION)
		return 220;
	if (bytes && (kind == OPERATION_CURVE || kind == OPERATION_LUT))
		return 20;
	return costs[kind].sample + costs[kind].term * operation_terms(kind, radius_x, radius_y);
}

/* The cost of a sample of one pass of a resize, and of a term. */
static const double RESIZE_COST = 20, RESIZE_TERM = 0.5;

double reference_cost(const struct chain *chain, const struct image *image, uint32_t width,
                      uint32_t height)
{
	double cost = 0, w = width, h = height;
	struct geometry g;

	if (chain_geometry(chain, image, &g, NULL))
		g.resizes = false;
	for (uint32_t i = chain->count; i-- > 0;) {
		uint32_t x, y;

		if (g.resizes && chain->call[i].filter == FILTER_RESIZE) {
			const double across = resizing_taps(&g.scale[0]),
			             down = resizing_taps(&g.scale[1]);

			cost += w * h * (RESIZE_COST + RESIZE_TERM * across);
			w = w * g.scale[0].step + across;
			cost += w * h * (RESIZE_COST + RESIZE_TERM * down);
			h = h * g.scale[1].step + down;
			continue;
		}
		filter_radius(&chain->call[i], &x, &y);
		/* A separable filter also sums columns beside the window. */
		cost += (w + 2.0 * x) * h * call_cost(&chain->call[i], image, x, y) * (i ? 2 : 1);
		w += 2.0 * x;
		h += 2.0 * y;
	}
	return (cost + w * h * 2) * image->bands;
}

void reference_piece(const struct chain *chain, const struct image *image, struct window *piece)
{
	enum { WIDTH = 256, HEIGHT = 64 };
	struct geometry g;
	uint32_t x, y;

	chain_halo(chain, &x, &y);
	/* Wide, because a separable filter also sums the columns beside a piece. */
	*piece = (struct window){.width = MIN(image->width, MAX(6 * x, WIDTH)),
	                         .height = MIN(image->height, MAX(2 * y, HEIGHT))};
	if (chain_geometry(chain, image, &g, NULL) || !g.resizes)
		return;
	/* The source of a piece is to be as large. */
	piece->width = MIN(g.size[0], (uint32_t)(piece->width / fmax(1, g.scale[0].step)) + 1);
	piece->height = MIN(g.size[1], (uint32_t)(piece->height / fmax(1, g.scale[1].step)) + 1);
}

double reference_cost_in_pieces(const struct chain *chain, const struct image *image)
{
	struct window piece;
	uint32_t width = image->width, height = image->height;

	reference_piece(chain, image, &piece);
	if (chain_resizing(chain) < chain->count &&
	    chain_output_size(chain, image, &width, &height, NULL))
		return 0;
	return reference_cost(chain, image, piece.width, piece.height) / piece.width /
	       piece.height * width * height;
}

/* ---- comparing ---- */

/* Some samples side by side; count: of a row's end. */
enum { SAMPLES = 64 };

/* Adds samples if all are finite and none is a mismatch or circular; else returns false. */
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
	const double period = r->type == PIXEL_F32 ? 2 * M_PI : pixel_type_rows[r->type].full_scale;
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
	if (!(off > r->slack[i]) || d->mismatches++) /* a slack may be NaN, too */
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
	const size_t span = (size_t)r->window.width * r->bands,
	             size = pixel_type_rows[r->type].size;
	const double anything =
	    r->type == PIXEL_F32 ? 0.5 * SLACK_UNLIMITED : pixel_type_rows[r->type].full_scale;

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
