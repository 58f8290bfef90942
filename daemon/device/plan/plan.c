/* Plans: the kernels that a chain needs, and the buffers that each reads and writes.
 *
 * The hard part: a chain applied to tiles must give the same result as its filters applied to the
 * whole image one after another. So each filter's result is stored as pixels (rounded and
 * saturated), on a region that exceeds the tile by the reach of the filters that follow. If that
 * region crosses the image's edge, `extend` replaces the pixels outside according to the border
 * rule. With `wrap` a filter's result outside the image already is the pixel that the rule gives;
 * with `crop` no region crosses the edge.
 *
 * Alpha: a smoothing filter works on premultiplied floats (premultiply, filter, unpremultiply),
 * unless its kernel weights by alpha itself. An offset is added to the colour after the division
 * and never to alpha: it shifts colours as it would without alpha and does not change opacity.
 *
 * Luma and chroma: from the first to the last of consecutive filters on luma or chroma, pixels are
 * YCbCr floats. They are rounded only when they are converted back to colours. */
#include "device/plan/plan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/log.h"
#include "device/plan/launch.h"
#include "device/plan/weights.h"

/* A plan under construction: each appended step reads the result of the one before. The state after
 * the steps so far: the place of the pixels, their type, and how far the region still extends
 * beyond the tile (expand_x and expand_y, in pixels or points). busy: the place of pixels that a
 * later step still reads. PLACE_IN, which is never overwritten, means none. */
struct builder {
	struct programs *programs;
	const struct chain *chain;
	struct image image;      /* that the next filter gets: a resize changes its size */
	variant_chooser *choose; /* NULL: the table's choice */
	void *user;
	struct plan *plan;
	enum error e; /* the first one: nothing but general steps is added after it */
	enum place at, busy;
	enum pixel_type type;
	bool ycc;
	bool asked; /* a step uses the requested variant */
	uint32_t expand_x, expand_y;
	struct step_points points;
	enum stage stage;
	uint32_t width; /* width of the result, in pixels or points */
};

/* The next scratch buffer after `at` other than `busy`. */
static enum place next_scratch(enum place at, enum place busy)
{
	enum place next = at < PLACE_A || at == PLACE_C ? PLACE_A : (enum place)(at + 1);

	return next == busy ? next_scratch(next, PLACE_IN) : next;
}

/* Returns a new step that reads the current pixels and writes pixels of type `to` to a scratch
 * buffer that is not busy; it holds nothing yet. program: the pixel type of the kernel. */
static struct step begin_step(const struct builder *b, enum kernel kernel, enum pixel_type program,
                              enum pixel_type to)
{
	return (struct step){
	    .kernel = kernel,
	    .shape = variant_general_shape(programs_device(b->programs), kernel),
	    .program = program,
	    .src = b->at,
	    .dst = next_scratch(b->at, b->busy),
	    .src_type = b->type,
	    .dst_type = to,
	    .bands = b->image.bands,
	    .expand_x = b->expand_x,
	    .expand_y = b->expand_y,
	    .points = b->points,
	    .stage = b->stage,
	    .geometry = &b->plan->geometry,
	    .image_width = b->image.width,
	    .image_height = b->image.height,
	};
}

/* Appends a complete step; the list takes over its references. */
static void add_step(struct builder *b, const struct step *step)
{
	b->plan->list.step[b->plan->list.count++] = *step;
	b->at = step->dst;
	b->type = step->dst_type;
}

/* Appends a general kernel's step, complete but for its function. Takes over its references. */
static void add_general(struct builder *b, struct step *step)
{
	if (programs_find(b->programs, step, true) >= PROGRAM_FAILED)
		log_error("no kernel %s", kernel_name(step->kernel));
	add_step(b, step);
}

/* Makes the filter's step with this kernel. *state: whether its program is ready. */
static enum error try_kernel(const struct builder *b, const struct work *work, double offset,
                             enum kernel kernel, struct shape shape, struct step *step,
                             enum program_state *state)
{
	enum error e;

	*step = begin_step(b, kernel, b->type, b->type);
	step->shape = shape;
	step->offset = (float)offset;
	step->offset_rest = (float)(offset - (float)offset);
	e = step_fill(programs_device(b->programs), work, step);
	if (!e)
		*state = programs_find(b->programs, step, variant_is_general(kernel));
	return e;
}

/* Chooses kernel and shape, which on entry are the general ones. True if the chain names it. */
static bool choose_kernel(struct builder *b, const struct work *work, enum kernel *kernel,
                          struct shape *shape)
{
	const struct device *device = programs_device(b->programs);
	const enum kernel asked = chain_kernel(b->chain);
	struct shape shapes[SHAPES_MAX];

	if (asked < KERNELS && variant_applies(asked, work, device, true)) {
		variant_shapes(asked, work, device, shapes);
		b->asked = true;
		*kernel = asked;
		*shape = shapes[0];
		return true;
	}
	if (b->chain->variant == VARIANT_GENERAL)
		b->asked = true;
	else if (b->choose)
		b->choose(b->user, work, kernel, shape);
	else
		variant_choose_by_table(device, work, kernel, shape);
	return false;
}

/* Appends a filter on pixels of the current type. Uses the requested or chosen kernel, or the
 * general one while that is not compiled. A step whose kernel the request names, or whose general
 * kernel is not compiled either, waits for its program (plan_resolve()). Appends nothing for an
 * operation without a general kernel if no kernel does it, if the chain names one of its parts or
 * general kernels, or if the kernel is not compiled. offset: added to the result, in pixel values;
 * keep, alpha: as in struct work. */
static void add_filter(struct builder *b, const struct operation *op, double offset, uint32_t keep,
                       uint32_t alpha)
{
	const struct device *device = programs_device(b->programs);
	const struct work work = {.operation = op,
	                          .type = b->type,
	                          .image_type = b->image.type,
	                          .bands = b->image.bands,
	                          .keep = keep,
	                          .alpha = alpha,
	                          .width = b->width,
	                          .read_width = b->image.width + 2 * b->plan->halo_x,
	                          .read_height = b->image.height + 2 * b->plan->halo_y};
	const enum kernel general = variant_general_kernel(device, &work);
	const bool names_part = kernel_row(chain_kernel(b->chain))->operations &
	                        operation_kernels(op->kind) & ~(1u << op->kind);
	struct shape general_shape = {0}, shape;
	enum kernel kernel = general;
	enum program_state state;
	struct step step;
	bool named;

	if (general < KERNELS)
		general_shape = variant_general_shape(device, general);
	if (b->e || (general == KERNELS && names_part))
		return;
	shape = general_shape;
	named = choose_kernel(b, &work, &kernel, &shape);
	if (kernel == KERNELS)
		return;
	b->e = try_kernel(b, &work, offset, kernel, shape, &step, &state);
	if (!b->e && state != PROGRAM_READY && !named) {
		step_release(&step);
		if (general == KERNELS)
			return;
		b->e = try_kernel(b, &work, offset, general, general_shape, &step, &state);
	}
	if (b->e)
		return;
	if (step.kernel == KERNEL_SEP_TWO_PASS) {
		/* The row pass writes transposed floats, the column pass reads them. */
		struct step second = step;

		step_retain(&second);
		step.dst_type = second.src_type = PIXEL_F32;
		second.src = step.dst;
		second.dst = next_scratch(step.dst, b->busy);
		second.pass = 1;
		add_step(b, &step);
		step = second;
	}
	add_step(b, &step);
}

static bool wants_ycc(const struct image *image, const struct filter_call *call)
{
	return image->bands - image->alpha == 3 &&
	       (call->channels == CHANNELS_LUMA || call->channels == CHANNELS_CHROMA);
}

/* The bands that a call leaves unchanged, as a bit mask. */
static uint32_t kept_bands(const struct image *image, const struct filter_call *call,
                           const struct operation *op)
{
	const uint32_t all = (1u << image->bands) - 1;
	const uint32_t colour = (1u << (image->bands - image->alpha)) - 1;
	const bool ycc = wants_ycc(image, call);
	const uint32_t changed[CHANNELS] = {
	    [CHANNELS_ALL] = op->smoothing || op->makes_alpha ? all : colour,
	    [CHANNELS_COLOR] = colour,
	    [CHANNELS_ALPHA] = ~colour,
	    [CHANNELS_RED] = 1,
	    [CHANNELS_GREEN] = 2,
	    [CHANNELS_BLUE] = 4,
	    [CHANNELS_LUMA] = ycc ? 1 : colour,
	    [CHANNELS_CHROMA] = ycc ? 6 : 0,
	};

	return all & ~changed[call->channels];
}

/* Begins a step that converts floats to pixels, and also reads the original pixels. */
static struct step begin_last(const struct builder *b, enum kernel kernel, enum place original,
                              enum pixel_type type, uint32_t keep)
{
	struct step step = begin_step(b, kernel, type, type);

	step.original = original;
	step.original_type = type;
	step.keep = keep;
	return step;
}

/* Makes rows (and columns) of the next steps pixels, or points with `points` more on each side. */
static void count_points(struct builder *b, bool down, bool across, uint32_t points)
{
	b->points.down = down;
	b->points.across = across;
	b->expand_y = down ? points : b->points.grow_y;
	b->expand_x = across ? points : b->points.grow_x;
}

/* Appends a step to a lattice, or (grow) from it. */
static void add_scaled(struct builder *b, struct step step, bool grow)
{
	if (!b->e)
		b->e = weights_new_lattice(programs_device(b->programs), &b->points.lattice, grow,
		                           &step.weights);
	if (!b->e)
		add_general(b, &step);
}

/* Appends the filter on the lattice points. */
static void add_between(struct builder *b, const struct operation *op)
{
	double filter[2 * (2 * LATTICE_RADIUS_MAX + 1)];
	const uint32_t radius = op->lattice.radius, width = b->width;
	struct operation between = {.kind = OPERATION_SEPARABLE,
	                            .radius_x = radius,
	                            .radius_y = radius,
	                            .smoothing = true,
	                            .coefficients = filter,
	                            .gain = 1};

	lattice_filter(&op->lattice, op->sigma, filter);
	memcpy(filter + 2 * radius + 1, filter, (2 * radius + 1) * sizeof *filter);
	b->width = width < op->lattice.stride ? 1 : width / op->lattice.stride;
	add_filter(b, &between, 0, 0, 0);
	b->width = width;
}

/* Adds a Gaussian of large sigma on a lattice (filters/lattice.h): shrinks the image to lattice
 * points (down, then across), filters them, and grows them back to pixels (across, then down). In a
 * direction that has been shrunk, regions are measured in points. */
static void add_lattice(struct builder *b, const struct operation *op, uint32_t keep)
{
	const enum pixel_type type = b->type;
	const enum place original = b->at, busy = b->busy;
	const uint32_t radius = op->lattice.radius;

	b->points = (struct step_points){op->lattice, b->expand_x, b->expand_y, false, false};
	if (busy == PLACE_IN && keep)
		b->busy = original;
	count_points(b, true, false, radius);
	b->expand_x += op->radius_x;
	add_scaled(b, begin_step(b, KERNEL_SHRINK_DOWN, type, PIXEL_F32), false);
	count_points(b, true, true, radius);
	add_scaled(b, begin_step(b, KERNEL_SHRINK_ACROSS, b->type, PIXEL_F32), false);
	count_points(b, true, true, 0);
	add_between(b, op);
	count_points(b, true, false, 0);
	add_scaled(b, begin_last(b, KERNEL_GROW_ACROSS, original, PIXEL_F32, 0), true);
	count_points(b, false, false, 0);
	add_scaled(b, begin_last(b, KERNEL_GROW_DOWN, original, type, keep), true);
	b->points = (struct step_points){0};
	b->busy = busy;
}

/* Adds a filter, directly or on a lattice. */
static void add_operation(struct builder *b, const struct operation *op, double offset,
                          uint32_t keep, uint32_t alpha)
{
	if (op->lattice.stride)
		add_lattice(b, op, keep);
	else
		add_filter(b, op, offset, keep, alpha);
}

/* Adds an operation on premultiplied floats (plain ones unless alpha_weighted), with a conversion
 * before it where it reads them. Begins the step that makes pixels of them. */
static struct step add_in_floats(struct builder *b, const struct operation *op, bool alpha_weighted,
                                 enum kernel kernel, uint32_t keep)
{
	const enum pixel_type type = b->type;
	const enum place original = b->at;
	struct step step;

	b->busy = original;
	step = begin_step(b, KERNEL_PREMULTIPLY, type, PIXEL_F32);
	step.expand_x += op->radius_x;
	step.expand_y += op->radius_y;
	step.alpha = alpha_weighted;
	add_general(b, &step);
	add_operation(b, op, 0, 0, 0);
	step = begin_last(b, kernel, original, type, keep);
	b->busy = PLACE_IN;
	return step;
}

/* Adds a blur and the comparison with it: in one step, or a blur in floats and a step after it. */
static void add_comparison(struct builder *b, const struct operation *op, uint32_t keep,
                           bool alpha_weighted)
{
	const enum kernel kernel =
	    op->kind == OPERATION_LOCAL_THRESHOLD ? KERNEL_THRESHOLD_LOCAL : KERNEL_UNSHARP;
	struct operation blur = *op;
	struct step step;
	const uint32_t steps = b->plan->list.count;

	if (!alpha_weighted && !op->lattice.stride)
		add_filter(b, op, 0, keep, 0);
	if (b->e || b->plan->list.count > steps)
		return;
	blur.kind = OPERATION_SEPARABLE;
	blur.gain = 1;
	step = add_in_floats(b, &blur, alpha_weighted, kernel, keep);
	step_set_comparison(&step, op, b->image.type);
	step.alpha = alpha_weighted;
	add_general(b, &step);
}

/* Adds two extremes, with the largest first or last: an opening or a closing. */
static void add_both(struct builder *b, const struct operation *op, bool largest_first,
                     uint32_t keep)
{
	const struct operation first = operation_extreme(op, largest_first);
	const struct operation second = operation_extreme(op, !largest_first);

	b->expand_x += second.radius_x;
	b->expand_y += second.radius_y;
	add_filter(b, &first, 0, keep, 0);
	b->expand_x -= second.radius_x;
	b->expand_y -= second.radius_y;
	add_filter(b, &second, 0, keep, 0);
}

/* Adds extremes and, if they are not the result, the difference of the last one and b->busy. */
static void add_morphology(struct builder *b, const struct operation *op, uint32_t keep)
{
	const enum morphology what = op->morphology;
	const enum place original = b->at;
	struct step step;

	if (what == MORPHOLOGY_OPEN || what == MORPHOLOGY_CLOSE) {
		add_both(b, op, what == MORPHOLOGY_CLOSE, keep);
		return;
	}
	b->busy = original;
	if (what == MORPHOLOGY_GRADIENT) { /* both extremes of the same pixels */
		const struct operation smallest = operation_extreme(op, false);
		const struct operation largest = operation_extreme(op, true);

		add_filter(b, &smallest, 0, keep, 0);
		b->busy = b->at;
		b->at = original;
		add_filter(b, &largest, 0, keep, 0);
	} else {
		add_both(b, op, what == MORPHOLOGY_BLACKHAT, keep);
	}
	step = begin_last(b, KERNEL_SUBTRACT, b->busy, b->type, keep);
	b->busy = PLACE_IN;
	step.reverse = what == MORPHOLOGY_TOPHAT;
	add_general(b, &step);
}

/* Makes a step that extends the pixels. p: the border constant as colours, even if b has YCbCr. */
static struct step extend_step(const struct builder *b, const double p[BANDS_MAX])
{
	struct step step = begin_step(b, KERNEL_EXTEND, b->type, b->type);
	double middle = pixel_type_rows[b->image.type].midpoint;
	double luma = 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
	float *pixel = step.border.pixel;

	step.dst = b->at;
	step.border.mode = b->chain->border;
	for (int i = 0; i < BANDS_MAX; i++)
		pixel[i] = (float)p[i];
	if (b->ycc) {
		pixel[0] = (float)luma;
		pixel[1] = (float)((p[2] - luma) / 1.772 + middle);
		pixel[2] = (float)((p[0] - luma) / 1.402 + middle);
	}
	return step;
}

/* Converts the pixels to YCbCr or back, if necessary. */
static void convert_to(struct builder *b, bool ycc)
{
	enum pixel_type type = b->image.type;
	struct step step;

	if (b->ycc == ycc)
		return;
	step = begin_step(b, ycc ? KERNEL_TO_YCC : KERNEL_FROM_YCC, type, ycc ? PIXEL_F32 : type);
	step.offset = (float)pixel_type_rows[type].midpoint;
	add_general(b, &step);
	b->ycc = ycc;
}

/* Returns true if a call may become a table lookup: it treats each sample by itself, samples are
 * integers, and the device is a CPU or all devices must give the same bytes. */
static bool may_be_looked_up(const struct builder *b, const struct filter_call *call)
{
	return operation_is_of_samples(filter_call_operation(call)) && b->image.type != PIXEL_F32 &&
	       !wants_ycc(&b->image, call) &&
	       (programs_device(b->programs)->type == DEVICE_CPU ||
	        b->chain->variant == VARIANT_GENERAL) &&
	       chain_kernel(b->chain) != KERNEL_CURVE;
}

/* Makes an operation of the next call, or of as many (*count) as one table can do. */
static enum error next_operation(const struct builder *b, const struct filter_call *call,
                                 uint32_t *count, struct operation *op)
{
	const bool named = chain_kernel(b->chain) < KERNELS; /* it might not have a table */
	const bool may = may_be_looked_up(b, call);
	struct operation ops[CHAIN_FILTERS_MAX] = {0};
	uint32_t alike = 1;
	bool slow = false;
	enum error e = ERR_OK;

	while (may && !named && alike < *count && may_be_looked_up(b, &call[alike]) &&
	       call[alike].channels == call->channels)
		alike++;
	for (uint32_t i = 0; !e && i < alike; i++) {
		e = filter_lower(&call[i], b->chain->coefficient, &ops[i]);
		/* A table is faster than a power, or than a table and other operations. */
		slow |= ops[i].kind == OPERATION_CURVE ? ops[i].curve.exponent != 1
		                                       : ops[i].kind == OPERATION_LUT && alike > 1;
	}
	*count = may && slow ? alike : 1;
	if (!e && may && slow) {
		e = operation_tabulate(ops, alike,
		                       (uint32_t)pixel_type_rows[b->image.type].full_scale, op);
	} else if (!e) {
		*op = ops[0];
		ops[0].coefficients = NULL;
	}
	for (uint32_t i = 0; i < alike; i++)
		operation_fini(&ops[i]);
	return e;
}

/* Adds a pass of a resize: down, then across. */
static void add_resize_pass(struct builder *b, enum kernel kernel, int direction,
                            enum pixel_type program, enum pixel_type to)
{
	struct step step = begin_step(b, kernel, program, to);

	if (!b->e)
		b->e = weights_new_resize(programs_device(b->programs), &b->plan->geometry,
		                          direction, &step.weights, &step.resize.words);
	if (!b->e)
		add_general(b, &step);
}

/* Makes the pixels of the next steps the result's. */
static void begin_result(struct builder *b)
{
	const struct geometry *g = &b->plan->geometry;

	b->stage = STAGE_RESULT;
	b->expand_x = g->after[0];
	b->expand_y = g->after[1];
	b->width = b->image.width = g->size[0];
	b->image.height = g->size[1];
}

/* Adds both passes of a resize in one step, if there is a kernel for that. */
static void add_resize_at_once(struct builder *b, struct operation *op)
{
	const struct geometry *g = &b->plan->geometry;
	const struct builder before = *b;
	const uint32_t steps = b->plan->list.count;

	op->across = g->scale[0];
	op->down = g->scale[1];
	begin_result(b);
	add_filter(b, op, 0, 0, 0);
	if (!b->e && b->plan->list.count == steps)
		*b = before;
}

/* Adds a resize. From then on pixels are the result's. */
static void add_resize(struct builder *b, struct operation *op, bool alpha_weighted)
{
	const struct geometry *g = &b->plan->geometry;
	const enum pixel_type type = b->type, across = alpha_weighted ? PIXEL_F32 : type;
	/* Pixels beside the result are made from others only if the border wraps. */
	const bool beside = g->wraps && (g->after[0] || g->after[1]);
	const uint32_t steps = b->plan->list.count;
	struct step step;

	if (!alpha_weighted && !beside)
		add_resize_at_once(b, op);
	if (b->e || b->plan->list.count > steps)
		return;
	b->asked |= b->chain->variant == VARIANT_GENERAL;
	if (alpha_weighted) {
		step = begin_step(b, KERNEL_PREMULTIPLY, type, PIXEL_F32);
		step.alpha = true;
		add_general(b, &step);
	}
	b->stage = STAGE_ROWS;
	b->expand_y = g->after[1];
	add_resize_pass(b, KERNEL_RESIZE_DOWN, 1, b->type, PIXEL_F32);
	begin_result(b);
	add_resize_pass(b, KERNEL_RESIZE_ACROSS, 0, across, across);
	if (!alpha_weighted)
		return;
	step = begin_last(b, KERNEL_UNPREMULTIPLY, b->at, type, 0);
	add_general(b, &step);
}

/* Adds the next filter of the chain, or as many filters as one step does: *count of the remaining
 * ones. Conversions before it cover the region that it reads. */
static void add_call(struct builder *b, const struct filter_call *call, uint32_t *count)
{
	const struct image *image = &b->image;
	struct operation op;
	struct step step;
	double offset;
	uint32_t keep, beside_x, beside_y;
	bool alpha_weighted, fits;

	b->e = next_operation(b, call, count, &op);
	if (b->e)
		return;
	/* The plane that an operation knows belongs to the image, or to its middle. */
	beside_x = image->width - op.plane_width;
	beside_y = image->height - op.plane_height;
	if (!op.plane)
		fits = op.kind != OPERATION_EDGES && op.kind != OPERATION_CLAHE;
	else if (b->chain->border == BORDER_CROP)
		fits = op.plane_width <= image->width && op.plane_height <= image->height &&
		       !(beside_x % 2) && !(beside_y % 2);
	else
		fits = !beside_x && !beside_y;
	if (!fits) {
		operation_fini(&op);
		b->e = ERR_INTERNAL;
		return;
	}
	convert_to(b, wants_ycc(image, call));
	b->expand_x -= op.radius_x;
	b->expand_y -= op.radius_y;
	keep = kept_bands(image, call, &op);
	if (op.by_band && image->alpha && !op.makes_alpha)
		keep |= 1u << (image->bands - 1);
	/* A single band, luma or chroma are plain samples. */
	alpha_weighted = image->alpha &&
	                 (call->channels == CHANNELS_ALL || call->channels == CHANNELS_COLOR) &&
	                 (op.smoothing || operation_compares(op.kind));
	offset = op.offset + (op.signed_output ? pixel_type_rows[image->type].midpoint : 0);
	if (op.kind == OPERATION_RESIZE) {
		add_resize(b, &op, alpha_weighted);
	} else if (operation_compares(op.kind)) {
		add_comparison(b, &op, keep, alpha_weighted);
	} else if (op.kind == OPERATION_MORPHOLOGY) {
		add_morphology(b, &op, keep);
	} else if (!alpha_weighted || variant_weights_by_alpha(&op, image->type)) {
		add_operation(b, &op, offset, keep,
		              op.kind == OPERATION_MIX ? image->alpha : alpha_weighted);
	} else {
		step = add_in_floats(b, &op, true, KERNEL_UNPREMULTIPLY, keep);
		step.offset = (float)offset;
		add_general(b, &step);
	}
	operation_fini(&op);
}

/* Keeps the original pixels outside the regions; nothing overwrites them. */
static void add_blend(struct builder *b)
{
	const struct chain *chain = b->chain;
	struct step blend;

	convert_to(b, false);
	b->plan->bounded = b->plan->list.count;
	blend = begin_last(b, KERNEL_BLEND, PLACE_IN, b->type, 0);
	blend.shapes = chain->regions.count;
	blend.feather = chain->regions.feather;
	blend.invert = chain->regions.invert;
	blend.alpha = b->image.alpha;
	b->e = weights_new_shapes(programs_device(b->programs), chain, &blend.weights);
	if (!b->e)
		add_general(b, &blend);
}

/* Fills in the steps of a plan that has its chain and image. */
static void make_steps(struct builder *b)
{
	struct plan *plan = b->plan;
	const struct chain *chain = b->chain;
	const bool extend = chain->border != BORDER_WRAP && chain->border != BORDER_CROP;
	double border[BANDS_MAX] = {0};

	b->e = chain_border_pixel(chain, &b->image, border, NULL);
	plan->halo_x = plan->geometry.halo[0];
	plan->halo_y = plan->geometry.halo[1];
	b->expand_x = plan->halo_x;
	b->expand_y = plan->halo_y;
	if (!b->e && chain->border != BORDER_CROP &&
	    (plan->halo_x || plan->halo_y || plan->geometry.resizes))
		plan->border = extend_step(b, border);
	for (uint32_t i = 0, done; !b->e && i < chain->count; i += done) {
		done = chain->count - i;
		if (chain->regions.count && chain->call[i].filter == FILTER_RESIZE)
			add_blend(b);
		if (i && extend) {
			struct step step = extend_step(b, border);

			add_general(b, &step);
		}
		if (!b->e)
			add_call(b, &chain->call[i], &done);
	}
	if (!b->e)
		convert_to(b, false);
	if (!b->e && chain->regions.count && !plan->geometry.resizes)
		add_blend(b);
	if (!b->e && !b->asked && chain->variant != VARIANT_ANY)
		b->e = ERR_BAD_PARAMETER;
	if (b->e)
		return;
	plan->list.step[plan->list.count - 1].dst = PLACE_OUT;
	plan->stacks = true;
	for (uint32_t i = 0; i < plan->list.count; i++)
		plan->stacks &= launch_can_stack(&plan->list.step[i]);
}

enum error plan_new(struct programs *programs, const struct chain *chain, const struct image *image,
                    variant_chooser *choose, void *user, struct plan **plan)
{
	struct builder b = {.programs = programs,
	                    .chain = chain,
	                    .image = *image,
	                    .choose = choose,
	                    .user = user,
	                    .at = PLACE_IN,
	                    .busy = PLACE_IN,
	                    .type = image->type};
	const size_t size = chain_size(chain);
	struct geometry geometry;
	enum error e = chain_geometry(chain, image, &geometry, NULL);

	b.stage = geometry.resizes ? STAGE_SOURCE : STAGE_RESULT;
	b.width = geometry_source(&geometry, 0, geometry.crop[0], geometry.size[0]).count;
	*plan = NULL;
	if (e)
		return e;
	*plan = calloc(1, sizeof **plan + (size > sizeof *chain ? size - sizeof *chain : 0));
	if (!*plan)
		return ERR_MEMORY;
	(*plan)->image = *image;
	(*plan)->geometry = geometry;
	(*plan)->width = geometry.size[0];
	memcpy(&(*plan)->chain, chain, size);
	(*plan)->border.kernel = KERNELS;
	b.plan = *plan;
	make_steps(&b);
	if (b.e)
		plan_free(plan);
	return b.e;
}

enum program_state plan_resolve(struct plan *plan, struct programs *programs, enum tile_form form,
                                enum kernel *lacks)
{
	enum program_state state = PROGRAM_READY;

	if (!plan->resolved)
		programs_for(programs, plan->client);
	for (uint32_t i = 0; !plan->resolved && state < PROGRAM_FAILED && i < plan->list.count;
	     i++) {
		struct step *step = &plan->list.step[i];
		enum program_state found =
		    step->function ? PROGRAM_READY : programs_find(programs, step, true);

		if (found >= PROGRAM_FAILED || (found != PROGRAM_READY && state == PROGRAM_READY))
			*lacks = step->kernel;
		if (found != PROGRAM_READY)
			state = found;
	}
	plan->resolved = state == PROGRAM_READY;
	if (!plan->resolved || !(form & TILE_DECODE) || plan->border.kernel == KERNELS ||
	    plan->border.function)
		return state;
	*lacks = plan->border.kernel;
	return programs_find(programs, &plan->border, true);
}

void plan_free(struct plan **plan)
{
	if (!*plan)
		return;
	for (uint32_t i = 0; i < (*plan)->list.count; i++)
		step_release(&(*plan)->list.step[i]);
	step_release(&(*plan)->border);
	free(*plan);
	*plan = NULL;
}

/* The part of an image in a tile that may reach outside it. */
static struct area part_inside(const struct tile *tile, const struct step *step)
{
	const int64_t x = (int32_t)tile->x0, y = (int32_t)tile->y0;
	const int64_t left = MAX(x, 0), right = MIN(x + tile->width, step->image_width);
	const int64_t top = MAX(y, 0), bottom = MIN(y + tile->height, step->image_height);

	return (struct area){(uint32_t)left, (uint32_t)top, (uint32_t)MAX(right - left, 0),
	                     (uint32_t)MAX(bottom - top, 0)};
}

bool plan_step_needed(const struct plan *plan, const struct step *step, const struct tile *tile)
{
	const struct tile own = step_tile(step, tile);
	const struct area area = part_inside(&own, step);
	const bool bounded = step < plan->list.step + plan->bounded;
	const int64_t x = (int32_t)own.x0, y = (int32_t)own.y0;

	if (bounded && !regions_touch(&plan->chain.regions, chain_shapes(&plan->chain), &area))
		return false;
	return step->kernel != KERNEL_EXTEND || x < step->expand_x || y < step->expand_y ||
	       x + own.width + step->expand_x > step->image_width ||
	       y + own.height + step->expand_y > step->image_height;
}
