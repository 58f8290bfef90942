/* Appends a filter's step with the kernel that the request, the tuner or the table chooses. While
 * that is compiled, a general kernel replaces it. If the request names a variant, or the general
 * kernel is not compiled yet, the step waits for the program (plan_resolve()). */
#include "device/plan/builder.h"

#include <math.h>

#include "base/log.h"
#include "device/plan/weights.h"

/* The next scratch buffer after `at` other than `busy`. */
static enum place next_scratch(enum place at, enum place busy)
{
	enum place next = at < PLACE_A || at == PLACE_C ? PLACE_A : (enum place)(at + 1);

	return next == busy ? next_scratch(next, PLACE_IN) : next;
}

struct step builder_begin_step(const struct builder *b, enum kernel kernel, enum pixel_type program,
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
	    .bands = b->image->bands,
	    .expand_x = b->expand_x,
	    .expand_y = b->expand_y,
	    .points = b->points,
	    .image_width = b->image->width,
	    .image_height = b->image->height,
	};
}

/* Appends a complete step; the list takes over its references. */
static void add_step(struct builder *b, const struct step *step)
{
	b->list->step[b->list->count++] = *step;
	b->at = step->dst;
	b->type = step->dst_type;
}

void builder_add_general(struct builder *b, struct step *step)
{
	if (programs_find(b->programs, step, false) >= PROGRAM_FAILED)
		log_error("no kernel %s", kernel_name(step->kernel));
	add_step(b, step);
}

/* The largest float (integer) that is not above a number: samples are above either or neither. */
static float not_above(double number, enum pixel_type type)
{
	const float nearest = (float)(type == PIXEL_F32 ? number : floor(number));

	return nearest > number ? nextafterf(nearest, -INFINITY) : nearest;
}

void builder_set_comparison(struct step *step, const struct operation *op,
                            enum pixel_type image_type)
{
	const double full = pixel_type_full_scale(image_type);
	const double threshold = op->threshold * full;

	step->amount = (float)op->amount;
	step->threshold = (float)threshold;
	if (op->kind == OPERATION_UNSHARP)
		return;
	step->amount = (float)full;
	step->threshold = not_above(threshold, step->program);
	for (int band = 0; band < BANDS_MAX; band++)
		step->limits.s[band] = not_above(op->limit[band] * full, step->program);
}

static void fill_curve(struct step *step, const struct curve *c, double full)
{
	for (int band = 0; band < BANDS_MAX; band++) {
		step->curve.gain.s[band] = (float)(c->gain[band] / full);
		step->curve.bias.s[band] = (float)c->bias[band];
	}
	step->curve.low = (float)c->low;
	step->curve.high = (float)c->high;
	step->curve.exponent = (float)c->exponent;
	step->curve.scale = (float)(c->scale * full);
	step->curve.shift = (float)(c->shift * full);
}

/* Sets the rows of the matrix, and what is added. */
static void fill_mix(struct step *step, const struct operation *op, double full)
{
	for (int row = 0; row < BANDS_MAX; row++) {
		const double *c = op->coefficients + (size_t)row * (BANDS_MAX + 1);

		for (int column = 0; column < BANDS_MAX; column++)
			step->mix[row].s[column] = (float)c[column];
		step->mix[BANDS_MAX].s[row] = (float)(c[BANDS_MAX] * full);
	}
}

/* Sets the weights of a gradient; directions fill the range of integers, with 0 in the middle. */
static void fill_gradient(struct step *step, const struct operation *op, enum pixel_type image_type)
{
	const double full = pixel_type_full_scale(image_type);

	step->output = op->output;
	step->scale = 1;
	for (int i = 0; i < 3; i++)
		step->smooth[i] = (float)op->coefficients[i];
	if (op->output != GRADIENT_DIRECTION || image_type == PIXEL_F32)
		return;
	step->scale = (float)(full / (2 * M_PI));
	step->offset += (float)(full / 2);
}

static union step_limit limit_of(double limit, enum pixel_type program)
{
	const double square = floor(limit * limit);

	if (program == PIXEL_U16)
		return (union step_limit){.whole = (cl_long)square};
	return (union step_limit){.real = (float)(program == PIXEL_U8 ? square : limit)};
}

/* Places the plane of bits: what is missing of it is on both sides alike. */
static void fill_plane(struct step *step, const struct operation *op)
{
	const cl_int width = (cl_int)op->plane_width, height = (cl_int)op->plane_height;

	step->plane.words = 2 * ((op->plane_width + 63) / 64);
	step->plane.width = width;
	step->plane.height = height;
	step->plane.x = ((cl_int)step->image_width - width) / 2;
	step->plane.y = ((cl_int)step->image_height - height) / 2;
}

/* Work-items share a block of pixelate where it is wide enough for a power of two of them. */
static void fill_blocks(struct step *step)
{
	const uint32_t side = step->radius_x + 1, run = step->shape.x / (side * step->bands);
	uint32_t lanes = 1;

	while (lanes * 2 <= step->shape.group_x && lanes * 2 <= side)
		lanes *= 2;
	step->blocks.side = side;
	step->blocks.lanes = lanes;
	step->blocks.run = run ? run : 1;
}

/* Sets the parameters that depend on the operation, and makes the kernel's weights. */
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
	step->element = op->element;
	step->rank = op->rank;
	step->by_band = op->by_band;
	step->full = (float)full;
	if (op->kind == OPERATION_EXTREME)
		step->output = op->largest;
	else if (op->kind == OPERATION_GRADIENT)
		fill_gradient(step, op, work->image_type);
	else if (op->kind == OPERATION_CURVE)
		fill_curve(step, &op->curve, full);
	else if (op->kind == OPERATION_MIX)
		fill_mix(step, op, full);
	else if (op->kind == OPERATION_PIXELATE)
		fill_blocks(step);
	else if (op->kind == OPERATION_THRESHOLD || operation_compares(op->kind))
		builder_set_comparison(step, op, work->image_type);
	if (op->kind == OPERATION_BILATERAL) {
		step->space = (float)(op->space * log2_e);
		step->range = (float)(op->range / (full * full) * log2_e);
	}
	if (op->kind == OPERATION_CANNY) {
		step->low = limit_of(op->low * full, step->program);
		step->high = limit_of(op->high * full, step->program);
	}
	if (op->kind == OPERATION_EDGES) {
		fill_plane(step, op);
		return weights_new_plane(device, op, &step->weights);
	}
	if (op->kind == OPERATION_LUT) {
		step->tables = op->tables;
		step->entries = step->program == PIXEL_F32 ? op->entries : (uint32_t)full + 1;
		step->places = (float)((op->entries - 1) / full);
		return weights_new_tables(device, op, step->program, full, &step->weights);
	}
	return weights_new(device, op, variant_get(step->kernel)->weights, as_matrix, step->shape.y,
	                   &step->weights);
}

enum error builder_make_step(struct programs *programs, const struct work *work, enum kernel kernel,
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

/* Makes the filter's step with this kernel. *state: whether its program is ready. */
static enum error try_kernel(const struct builder *b, const struct work *work, double offset,
                             enum kernel kernel, struct shape shape, struct step *step,
                             enum program_state *state)
{
	*step = builder_begin_step(b, kernel, b->type, b->type);
	step->offset = (float)offset;
	step->offset_rest = (float)(offset - (float)offset);
	return builder_make_step(b->programs, work, kernel, shape, step, state);
}

static struct work work_of(const struct builder *b, const struct operation *op, uint32_t keep,
                           uint32_t alpha)
{
	uint32_t halo_x, halo_y;

	chain_halo(b->chain, &halo_x, &halo_y);
	return (struct work){.operation = op,
	                     .type = b->type,
	                     .image_type = b->image->type,
	                     .bands = b->image->bands,
	                     .keep = keep,
	                     .alpha = alpha,
	                     .width = b->width,
	                     .read_width = b->image->width + 2 * halo_x,
	                     .read_height = b->image->height + 2 * halo_y};
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
	/* There is one kernel for an operation with a plane, and a tuner keeps operations. */
	if (b->chain->variant == VARIANT_GENERAL)
		b->asked = true;
	else if (b->choose && !work->operation->plane)
		b->choose(b->user, work, kernel, shape);
	else
		variant_choose_by_table(device, work, kernel, shape);
	return false;
}

enum error builder_add_filter(struct builder *b, const struct operation *op, double offset,
                              uint32_t keep, uint32_t alpha)
{
	const struct device *device = programs_device(b->programs);
	const struct work work = work_of(b, op, keep, alpha);
	const enum kernel general = variant_general_kernel(device, &work);
	const bool names_part = kernel_row(chain_kernel(b->chain))->operations &
	                        operation_kernels(op->kind) & ~(1u << op->kind);
	struct shape general_shape = {0}, shape;
	enum kernel kernel = general, known = KERNELS;
	enum program_state state;
	struct step step;
	enum error e;
	bool named;

	if (general < KERNELS)
		general_shape = variant_general_shape(device, general);
	else
		variant_choose_by_table(device, &work, &known, &shape);
	if (general == KERNELS && (known == KERNELS || names_part))
		return ERR_OK;
	shape = general_shape;
	named = choose_kernel(b, &work, &kernel, &shape);
	if (kernel == KERNELS)
		return ERR_OK;
	e = try_kernel(b, &work, offset, kernel, shape, &step, &state);
	if (!e && state != PROGRAM_READY && !named) {
		step_release(&step);
		if (general == KERNELS)
			return ERR_OK;
		e = try_kernel(b, &work, offset, general, general_shape, &step, &state);
	}
	if (e)
		return e;
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
	return ERR_OK;
}
