/* Plans: which kernels a chain comes to, and in which order they write where.
 *
 * The hard part is that a chain on tiles must equal its filters applied to the whole image one
 * after another. So the result of each filter is stored as pixels (rounded and saturated), on a
 * region as much larger than the tile as the filters after it reach; and where that region crosses
 * the image's edge, `extend` replaces the pixels outside by what the border rule makes of those
 * inside. With `wrap` a filter's result outside the image is already what the rule would put there;
 * with `crop` no region crosses the edge.
 *
 * Alpha: a smoothing filter works on premultiplied floats (premultiply, filter, unpremultiply).
 * An offset is added to the colour after the division, and never to alpha: it shifts colours as it
 * would without alpha, and leaves opacity alone.
 *
 * Luma and chroma: from the first filter of either to the last in a row, pixels are floats of
 * YCbCr, rounded only when they become colours again.
 *
 * Large sigma: the Gaussian is computed on a lattice (common/lattice.h), in five steps. */
#include "device/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "device/weights.h"

/* A plan in the making: what the pixels are and where, and what is still to be added around them.
 */
struct builder {
	struct programs *programs;
	plan_chooser *choose;
	void *user;
	struct plan *plan;
	enum place at;
	enum pixel_type type;
	enum place
	    busy; /* holds pixels that are still needed; PLACE_IN, which always stays: none */
	bool ycc;
	bool asked; /* a step is done by the variant that was asked for */
	uint32_t expand_x, expand_y;
	struct step_points points;
	uint32_t width; /* of the result, in pixels or points */
};

/* The scratch buffer after one, that is not `busy`. */
static enum place next_scratch(enum place at, enum place busy)
{
	enum place next = at < PLACE_A || at == PLACE_C ? PLACE_A : (enum place)(at + 1);

	return next == busy ? next_scratch(next, PLACE_IN) : next;
}

/* Begins a step from where the pixels are to another place, as pixels of a type. */
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
	    .bands = b->plan->image.bands,
	    .expand_x = b->expand_x,
	    .expand_y = b->expand_y,
	    .points = b->points,
	};
}

/* Appends a complete step, which the plan then holds. */
static void add_step(struct builder *b, const struct step *step)
{
	b->plan->step[b->plan->count++] = *step;
	b->at = step->dst;
	b->type = step->dst_type;
}

/* Appends a step of a general kernel. */
static void add_general(struct builder *b, struct step *step)
{
	if (programs_find(b->programs, step, false) != PROGRAM_READY)
		log_error("%s is not there", kernel_name(step->kernel));
	add_step(b, step);
}

/* True if alpha weighs the colours. A single band, luma or chroma are plain samples. */
static bool is_weighed(const struct image *image, const struct filter_call *call,
                       const struct operation *op)
{
	return image->alpha &&
	       (call->channels == CHANNELS_ALL || call->channels == CHANNELS_COLOR) &&
	       (op->smoothing || op->kind == OPERATION_UNSHARP);
}

static bool wants_ycc(const struct image *image, const struct filter_call *call)
{
	return image->bands - image->alpha == 3 &&
	       (call->channels == CHANNELS_LUMA || call->channels == CHANNELS_CHROMA);
}

/* The bands that a call leaves as they are. */
static uint32_t kept_bands(const struct image *image, const struct filter_call *call,
                           const struct operation *op)
{
	const uint32_t all = (1u << image->bands) - 1;
	const uint32_t colour = (1u << (image->bands - image->alpha)) - 1;
	const bool ycc = wants_ycc(image, call);

	switch ((enum channels)call->channels) {
	case CHANNELS_ALPHA:
		return colour;
	case CHANNELS_RED:
	case CHANNELS_GREEN:
	case CHANNELS_BLUE:
		return all & ~(1u << (call->channels - CHANNELS_RED));
	case CHANNELS_LUMA:
		return all & ~(ycc ? 1u : colour);
	case CHANNELS_CHROMA:
		return all & ~(ycc ? 6u : 0);
	case CHANNELS_COLOR:
		return all & ~colour;
	default:
		return op->smoothing ? 0 : all & ~colour;
	}
}

void plan_choose_general(void *user, const struct work *work, enum kernel *kernel,
                         struct shape *shape)
{
	(void)user, (void)work, (void)kernel, (void)shape;
}

void plan_choose_by_table(const struct device *device, const struct work *work, enum kernel *kernel,
                          struct shape *shape)
{
	struct shape shapes[SHAPES_MAX];

	for (int special = 1; special >= 0; special--)
		for (enum kernel k = 0; k < KERNELS; k++) {
			bool is_special = kernel_row(k)->origin == KERNEL_SPECIAL;

			if (is_special != special || !variant_applies(k, work, device, false))
				continue;
			*kernel = k;
			variant_shapes(k, work, device, shapes);
			*shape = shapes[0];
			return;
		}
}

enum kernel plan_general_kernel(const struct device *device, const struct work *work)
{
	enum kernel k = 0;

	while (k < KERNELS && (kernel_row(k)->origin != KERNEL_GENERAL ||
	                       !variant_applies(k, work, device, false)))
		k++;
	return k;
}

/* Fills in what the operation says and the kernel needs. */
static enum error fill_step(const struct device *device, struct step *step, const struct work *work)
{
	const struct operation *op = work->operation;
	const double full = pixel_type_full_scale(work->image_type);
	const double log2_e = 1 / log(2);
	bool as_matrix = kernel_row(step->kernel)->operations & 1u << OPERATION_MATRIX;

	step->radius_x = op->radius_x;
	step->radius_y = op->radius_y;
	step->keep = work->keep;
	step->alpha = work->alpha;
	step->output = op->output;
	step->scale = 1;
	step->space = (float)(op->space * log2_e);
	step->range = (float)(op->range / (full * full) * log2_e);
	if (op->kind == OPERATION_GRADIENT)
		for (int i = 0; i < 3; i++)
			step->smooth[i] = (float)op->coefficients[i];
	if (op->kind == OPERATION_GRADIENT && op->output == GRADIENT_DIRECTION &&
	    work->image_type != PIXEL_F32) {
		step->scale = (float)(full / (2 * M_PI));
		step->offset += full / 2;
	}
	return weights_new(device, op, variant_get(step->kernel)->weights, as_matrix, step->shape.y,
	                   &step->weights);
}

enum error plan_make_step(struct programs *programs, const struct work *work, enum kernel kernel,
                          struct shape shape, struct step *step, enum program_state *state)
{
	enum error e;

	step->kernel = kernel;
	step->shape = shape;
	step->program = step->src_type = step->dst_type = work->type;
	step->bands = work->bands;
	e = fill_step(programs_device(programs), step, work);
	if (!e)
		*state = programs_find(programs, step, false);
	else
		step_release(step);
	return e;
}

/* The filter's step, with one kernel. */
static enum error try_kernel(const struct builder *b, const struct work *work, double offset,
                             enum kernel kernel, struct shape shape, struct step *step,
                             enum program_state *state)
{
	*step = begin_step(b, kernel, b->type, b->type);
	step->offset = offset;
	return plan_make_step(b->programs, work, kernel, shape, step, state);
}

/* Adds the two launches of sep_two_pass: across, into floats written transposed, and down. */
static void split_passes(struct builder *b, const struct step *step)
{
	struct step first = *step, second = *step;

	step_retain(&second);
	first.dst_type = second.src_type = PIXEL_F32;
	second.src = first.dst;
	second.dst = next_scratch(first.dst, b->busy);
	second.pass = 1;
	add_step(b, &first);
	add_step(b, &second);
}

/* The filter itself, on pixels of the type that they have now. */
static enum error add_filter(struct builder *b, const struct operation *op, double offset,
                             uint32_t keep, uint32_t alpha)
{
	const struct device *device = programs_device(b->programs);
	const struct image *image = &b->plan->image;
	struct work work = {op, b->type, image->type, image->bands, keep, alpha, b->width};
	enum kernel general = plan_general_kernel(device, &work), kernel = general;
	struct shape general_shape = variant_general_shape(device, general), shape = general_shape;
	enum kernel asked = chain_kernel(&b->plan->chain);
	struct shape shapes[SHAPES_MAX];
	bool forced = asked < KERNELS && variant_applies(asked, &work, device, true);
	enum program_state state;
	struct step step;
	enum error e;

	if (forced) {
		variant_shapes(asked, &work, device, shapes);
		b->asked = true;
		kernel = asked;
		shape = shapes[0];
	} else if (b->plan->chain.variant == VARIANT_GENERAL) {
		b->asked = true;
	} else if (b->choose) {
		b->choose(b->user, &work, &kernel, &shape);
	} else {
		plan_choose_by_table(device, &work, &kernel, &shape);
	}
	e = try_kernel(b, &work, offset, kernel, shape, &step, &state);
	if (!e && state != PROGRAM_READY && !forced) {
		step_release(&step);
		e = try_kernel(b, &work, offset, general, general_shape, &step, &state);
	}
	if (!e && step.kernel == KERNEL_SEP_TWO_PASS)
		split_passes(b, &step);
	else if (!e)
		add_step(b, &step);
	return e;
}

/* The columns or rows of the steps to come are points, larger by `points` on each side; or again
 * the pixels of the filter's result. */
static void set_columns(struct builder *b, bool across, uint32_t points)
{
	b->points.across = across;
	b->expand_x = across ? points : b->points.grow_x;
}

static void set_rows(struct builder *b, bool down, uint32_t points)
{
	b->points.down = down;
	b->expand_y = down ? points : b->points.grow_y;
}

static enum error add_shrink(struct builder *b, enum kernel kernel)
{
	struct step step = begin_step(b, kernel, b->type, PIXEL_F32);
	enum error e =
	    weights_new_spline(programs_device(b->programs), &b->points.lattice, &step.weights);

	if (!e)
		add_general(b, &step);
	return e;
}

static enum error add_grow(struct builder *b, enum kernel kernel, enum pixel_type to,
                           enum place original, uint32_t keep)
{
	struct step step = begin_step(b, kernel, to, to);
	enum error e =
	    weights_new_grow(programs_device(b->programs), &b->points.lattice, &step.weights);

	step.original = original;
	step.original_type = to;
	step.keep = keep;
	if (!e)
		add_general(b, &step);
	return e;
}

/* The filter between the points. */
static enum error add_between(struct builder *b, const struct operation *op)
{
	double filter[2 * (2 * LATTICE_RADIUS_MAX + 1)];
	const uint32_t radius = op->lattice.radius, width = b->width;
	struct operation between = {.kind = OPERATION_SEPARABLE,
	                            .radius_x = radius,
	                            .radius_y = radius,
	                            .smoothing = true,
	                            .coefficients = filter,
	                            .gain = 1};
	enum error e;

	lattice_filter(&op->lattice, op->sigma, filter);
	memcpy(filter + 2 * radius + 1, filter, (2 * radius + 1) * sizeof *filter);
	b->width = width < op->lattice.stride ? 1 : width / op->lattice.stride;
	e = add_filter(b, &between, 0, 0, 0);
	b->width = width;
	return e;
}

/* A Gaussian of large sigma; see common/lattice.h. */
static enum error add_lattice(struct builder *b, const struct operation *op, uint32_t keep)
{
	const enum pixel_type type = b->type;
	const enum place original = b->at, busy = b->busy;
	const uint32_t radius = op->lattice.radius;
	enum error e;

	b->points = (struct step_points){op->lattice, b->expand_x, b->expand_y, false, false};
	if (busy == PLACE_IN && keep)
		b->busy = original;
	b->expand_x += op->radius_x;
	set_rows(b, true, radius);
	e = add_shrink(b, KERNEL_SHRINK_DOWN);
	set_columns(b, true, radius);
	if (!e)
		e = add_shrink(b, KERNEL_SHRINK_ACROSS);
	set_rows(b, true, 0);
	set_columns(b, true, 0);
	if (!e)
		e = add_between(b, op);
	set_columns(b, false, 0);
	if (!e)
		e = add_grow(b, KERNEL_GROW_ACROSS, PIXEL_F32, original, 0);
	set_rows(b, false, 0);
	if (!e)
		e = add_grow(b, KERNEL_GROW_DOWN, type, original, keep);
	b->points = (struct step_points){0};
	b->busy = busy;
	return e;
}

/* A filter by the way that it takes. */
static enum error add_operation(struct builder *b, const struct operation *op, double offset,
                                uint32_t keep, uint32_t alpha)
{
	return op->lattice.stride ? add_lattice(b, op, keep)
	                          : add_filter(b, op, offset, keep, alpha);
}

/* Pixels to floats, colour times alpha if that weighs, on what a filter of this radius reads. */
static void add_premultiply(struct builder *b, const struct operation *op, bool weighed)
{
	struct step step = begin_step(b, KERNEL_PREMULTIPLY, b->type, PIXEL_F32);

	step.expand_x += op->radius_x;
	step.expand_y += op->radius_y;
	step.alpha = weighed;
	add_general(b, &step);
}

/* A step that makes pixels of floats, with an eye on the pixels that they come from. */
static struct step begin_last(const struct builder *b, enum kernel kernel, enum place original,
                              enum pixel_type type, uint32_t keep)
{
	struct step step = begin_step(b, kernel, type, type);

	step.dst = next_scratch(b->at, original);
	step.original = original;
	step.original_type = type;
	step.keep = keep;
	return step;
}

/* Premultiplied, filtered in float, divided. */
static enum error add_premultiplied(struct builder *b, const struct operation *op, double offset,
                                    uint32_t keep)
{
	enum pixel_type type = b->type;
	enum place original = b->at;
	struct step step;
	enum error e;

	b->busy = original;
	add_premultiply(b, op, true);
	e = add_operation(b, op, 0, 0, 0);
	b->busy = PLACE_IN;
	step = begin_last(b, KERNEL_UNPREMULTIPLY, original, type, keep);
	step.offset = offset;
	add_general(b, &step);
	return e;
}

/* Blurred in float, and the difference added to what was blurred. */
static enum error add_unsharp(struct builder *b, const struct operation *op, uint32_t keep,
                              bool weighed)
{
	enum pixel_type type = b->type;
	enum place original = b->at;
	struct operation blur = *op;
	struct step step;
	enum error e;

	blur.kind = OPERATION_SEPARABLE;
	b->busy = original;
	add_premultiply(b, op, weighed);
	e = add_operation(b, &blur, 0, 0, 0);
	b->busy = PLACE_IN;
	step = begin_last(b, KERNEL_UNSHARP, original, type, keep);
	step.amount = (float)op->amount;
	step.threshold = (float)(op->threshold * pixel_type_full_scale(b->plan->image.type));
	step.alpha = weighed;
	add_general(b, &step);
	return e;
}

/* The constant outside the image, as the pixels are now. */
static void set_border_pixel(const struct builder *b, float pixel[BANDS_MAX])
{
	const double *p = b->plan->border_pixel;
	double middle = pixel_type_midpoint(b->plan->image.type);
	double luma = 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];

	for (int i = 0; i < BANDS_MAX; i++)
		pixel[i] = (float)p[i];
	if (!b->ycc)
		return;
	pixel[0] = (float)luma;
	pixel[1] = (float)((p[2] - luma) / 1.772 + middle);
	pixel[2] = (float)((p[0] - luma) / 1.402 + middle);
}

static void add_extend(struct builder *b)
{
	const struct chain *chain = &b->plan->chain;
	struct step step = begin_step(b, KERNEL_EXTEND, b->type, b->type);

	if (chain->border == BORDER_WRAP || chain->border == BORDER_CROP)
		return;
	step.dst = b->at;
	step.border.mode = chain->border;
	step.border.image_width = b->plan->image.width;
	step.border.image_height = b->plan->image.height;
	set_border_pixel(b, step.border.pixel);
	add_general(b, &step);
}

/* Makes the pixels YCbCr or colours again, if they are not. */
static void convert_to(struct builder *b, bool ycc)
{
	enum pixel_type type = b->plan->image.type;
	struct step step;

	if (b->ycc == ycc)
		return;
	step = begin_step(b, ycc ? KERNEL_TO_YCC : KERNEL_FROM_YCC, type, ycc ? PIXEL_F32 : type);
	step.offset = pixel_type_midpoint(type);
	add_general(b, &step);
	b->ycc = ycc;
}

/* One filter of the chain. Whatever leads to its pixels is on the region that it reads. */
static enum error add_call(struct builder *b, const struct filter_call *call)
{
	const struct image *image = &b->plan->image;
	struct operation op;
	double offset;
	uint32_t keep;
	bool weighed;
	enum error e = filter_lower(call, b->plan->chain.coefficient, &op);

	if (e)
		return e;
	convert_to(b, wants_ycc(image, call));
	b->expand_x -= op.radius_x;
	b->expand_y -= op.radius_y;
	keep = kept_bands(image, call, &op);
	weighed = is_weighed(image, call, &op);
	offset = op.offset + (op.signed_output ? pixel_type_midpoint(image->type) : 0);
	if (op.kind == OPERATION_UNSHARP)
		e = add_unsharp(b, &op, keep, weighed);
	else if (weighed && op.kind != OPERATION_BILATERAL)
		e = add_premultiplied(b, &op, offset, keep);
	else
		e = add_operation(b, &op, offset, keep, weighed);
	operation_fini(&op);
	return e;
}

static enum error add_calls(struct builder *b)
{
	struct plan *plan = b->plan;
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < plan->chain.count; i++) {
		if (i)
			add_extend(b);
		e = add_call(b, &plan->chain.call[i]);
	}
	if (e)
		return e;
	convert_to(b, false);
	plan->step[plan->count - 1].dst = PLACE_OUT;
	return ERR_OK;
}

enum error plan_new(struct programs *programs, const struct chain *chain, const struct image *image,
                    plan_chooser *choose, void *user, struct plan **plan)
{
	struct builder b = {.programs = programs,
	                    .choose = choose,
	                    .user = user,
	                    .at = PLACE_IN,
	                    .busy = PLACE_IN,
	                    .type = image->type};
	struct problem problem;
	uint32_t height;
	enum error e = chain_output_size(chain, image, &b.width, &height, &problem);

	*plan = NULL;
	if (e)
		return e;
	b.plan = calloc(1, sizeof *b.plan);
	if (!b.plan)
		return ERR_MEMORY;
	b.plan->image = *image;
	b.plan->chain = *chain;
	chain_halo(chain, &b.plan->halo_x, &b.plan->halo_y);
	b.expand_x = b.plan->halo_x;
	b.expand_y = b.plan->halo_y;
	e = chain_border_pixel(chain, image, b.plan->border_pixel, &problem);
	if (!e)
		e = add_calls(&b);
	if (!e && !b.asked && chain->variant != VARIANT_ANY)
		e = ERR_BAD_PARAMETER;
	b.plan->stacks = true;
	for (uint32_t i = 0; i < b.plan->count; i++)
		b.plan->stacks &= step_stacks(&b.plan->step[i]);
	if (e)
		plan_free(&b.plan);
	*plan = b.plan;
	return e;
}

enum program_state plan_resolve(struct plan *plan, struct programs *programs)
{
	enum program_state state = PROGRAM_READY;

	if (plan->resolved)
		return state;
	for (uint32_t i = 0; state == PROGRAM_READY && i < plan->count; i++)
		if (!plan->step[i].function)
			state = programs_find(programs, &plan->step[i], true);
	plan->resolved = state == PROGRAM_READY;
	return state;
}

void plan_free(struct plan **plan)
{
	if (!*plan)
		return;
	for (uint32_t i = 0; i < (*plan)->count; i++)
		step_release(&(*plan)->step[i]);
	free(*plan);
	*plan = NULL;
}

bool plan_step_needed(const struct plan *plan, const struct step *step, const struct tile *tile)
{
	return step->kernel != KERNEL_EXTEND || step->expand_x > tile->x0 ||
	       step->expand_y > tile->y0 ||
	       step->expand_x > plan->image.width - tile->x0 - tile->width ||
	       step->expand_y > plan->image.height - tile->y0 - tile->height;
}
