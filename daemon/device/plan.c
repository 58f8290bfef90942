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
 * would without alpha, and leaves opacity alone. */
#include "device/plan.h"

#include <math.h>
#include <stdlib.h>

#include "common/filters.h"
#include "common/log.h"

/* Terms of a sum that the separable kernel adds directly (SEPARABLE_TERMS in separable.cl). */
enum { SEPARABLE_TERMS = 32 };

/* A plan in the making: where the pixels are now, and what is still to be added around them. */
struct builder {
	const struct programs *programs;
	struct plan *plan;
	enum place at;
	enum pixel_type type;
	uint32_t expand_x, expand_y;
};

/* The scratch buffer that the pixels are not in. */
static enum place other_scratch(enum place at)
{
	return at == PLACE_A ? PLACE_B : PLACE_A;
}

/* Appends a step from where the pixels are to another place; the caller fills in the rest. */
static struct step *add_step(struct builder *b, enum kernel kernel, enum pixel_type program,
                             enum pixel_type to)
{
	struct step *step = &b->plan->step[b->plan->count++];

	*step = (struct step){
	    .kernel = kernel,
	    .program = program,
	    .src = b->at,
	    .dst = other_scratch(b->at),
	    .src_type = b->type,
	    .dst_type = to,
	    .expand_x = b->expand_x,
	    .expand_y = b->expand_y,
	};
	b->at = step->dst;
	b->type = to;
	return step;
}

static enum error step_set_weights(const struct programs *programs, struct step *step,
                                   float *weights, size_t count)
{
	cl_int code;

	step->weights =
	    clCreateBuffer(programs->device->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
	                   count * sizeof *weights, weights, &code);
	if (!code)
		return ERR_OK;
	log_error("cannot store %zu weights: %s", count, opencl_error_name(code));
	return ERR_DEVICE;
}

static void copy_weights(float *to, const double *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] = (float)from[i];
}

/* Column and row, each behind a margin of zeros: see separable.cl. */
static enum error set_separable(const struct programs *programs, struct step *step,
                                const struct operation *op)
{
	size_t width = 2 * (size_t)op->radius_x + 1, height = 2 * (size_t)op->radius_y + 1;
	size_t margin = programs->separable_rows - 1, count = margin + height + margin + width;
	float *weights = calloc(count, sizeof *weights);
	enum error e;

	if (!weights)
		return ERR_MEMORY;
	copy_weights(weights + margin, op->coefficients + width, height);
	copy_weights(weights + 2 * margin + height, op->coefficients, width);
	e = step_set_weights(programs, step, weights, count);
	free(weights);
	return e;
}

/* The coefficient in column i and row j of an operation that is a matrix or a product of two. */
static double coefficient(const struct operation *op, size_t i, size_t j)
{
	size_t width = 2 * (size_t)op->radius_x + 1;

	if (op->kind == OPERATION_MATRIX)
		return op->coefficients[j * width + i];
	return op->coefficients[i] * op->coefficients[width + j];
}

/* The matrix between rows of zeros, or as pairs of leading part and remainder: see matrix.cl. */
static enum error set_matrix(const struct programs *programs, struct step *step,
                             const struct operation *op)
{
	bool pairs = step->kernel == KERNEL_MATRIX_COMPENSATED;
	size_t width = 2 * (size_t)op->radius_x + 1, height = 2 * (size_t)op->radius_y + 1;
	size_t margin = pairs ? 0 : (MATRIX_ROWS - 1) * width;
	size_t count = pairs ? 2 * width * height : width * height + 2 * margin;
	float *weights = calloc(count, sizeof *weights);
	enum error e;

	if (!weights)
		return ERR_MEMORY;
	for (size_t i = 0; i < width * height; i++) {
		double exact = coefficient(op, i % width, i / width);

		if (pairs) {
			weights[2 * i] = (float)exact;
			weights[2 * i + 1] = (float)(exact - weights[2 * i]);
		} else {
			weights[margin + i] = (float)exact;
		}
	}
	e = step_set_weights(programs, step, weights, count);
	free(weights);
	return e;
}

/* How many roundings a sum of `count` terms suffers in the separable kernel, at most. */
static double separable_roundings(double count)
{
	return fmin(count, SEPARABLE_TERMS) + count / SEPARABLE_TERMS;
}

/* True if sums of floats may be wrong by about 1 in a pixel of integer type. Every rounding loses
 * up to 2^-25 of the largest sum that can arise. Floats are judged by the size of what is summed,
 * so for them plain sums always suffice. */
static bool needs_compensation(const struct operation *op, enum pixel_type type)
{
	double width = 2.0 * op->radius_x + 1, height = 2.0 * op->radius_y + 1;
	double largest = op->gain * pixel_type_full_scale(type) + fabs(op->offset);
	double roundings = op->kind == OPERATION_MATRIX
	                       ? width + height
	                       : separable_roundings(width) + separable_roundings(height);

	if (type == PIXEL_F32 || op->kind == OPERATION_GRADIENT)
		return false;
	return (roundings + 2) * largest * 0x1p-25 > 0.5;
}

static bool fits_matrix(const struct operation *op)
{
	return 2 * op->radius_x + 1 <= MATRIX_SIDE_MAX && 2 * op->radius_y + 1 <= MATRIX_SIDE_MAX;
}

static enum kernel choose_kernel(const struct operation *op, enum pixel_type type)
{
	if (op->kind == OPERATION_GRADIENT)
		return KERNEL_GRADIENT;
	if (needs_compensation(op, type) && fits_matrix(op))
		return KERNEL_MATRIX_COMPENSATED;
	return op->kind == OPERATION_SEPARABLE ? KERNEL_SEPARABLE : KERNEL_MATRIX;
}

/* The filter itself, on pixels of the type that they have now. */
static enum error add_filter(struct builder *b, const struct operation *op, double offset,
                             bool keep_alpha)
{
	enum kernel kernel = choose_kernel(op, b->plan->image.type);
	struct step *step = add_step(b, kernel, b->type, b->type);

	step->radius_x = op->radius_x;
	step->radius_y = op->radius_y;
	step->offset = offset;
	step->keep_alpha = keep_alpha;
	if (kernel == KERNEL_SEPARABLE)
		return set_separable(b->programs, step, op);
	if (kernel != KERNEL_GRADIENT)
		return set_matrix(b->programs, step, op);
	step->output = op->output;
	copy_weights(step->smooth, op->coefficients, 3);
	return ERR_OK;
}

/* Premultiplied, filtered in float, divided. */
static enum error add_premultiplied(struct builder *b, const struct operation *op, double offset)
{
	enum pixel_type type = b->type;
	struct step *step = add_step(b, KERNEL_PREMULTIPLY, type, PIXEL_F32);
	enum error e;

	step->expand_x += op->radius_x;
	step->expand_y += op->radius_y;
	e = add_filter(b, op, 0, false);
	add_step(b, KERNEL_UNPREMULTIPLY, type, type)->offset = offset;
	return e;
}

static void add_extend(struct builder *b)
{
	struct step *step;
	enum place at = b->at;

	if (b->plan->chain.border == BORDER_WRAP || b->plan->chain.border == BORDER_CROP)
		return;
	step = add_step(b, KERNEL_EXTEND, b->type, b->type);
	step->dst = b->at = at;
}

/* One filter of the chain, and what makes its result ready for the next. */
static enum error add_call(struct builder *b, const struct filter_call *call, bool last)
{
	const struct image *image = &b->plan->image;
	struct operation op;
	double offset;
	enum error e = filter_lower(call, b->plan->chain.coefficient, &op);

	if (e)
		return e;
	b->expand_x -= op.radius_x;
	b->expand_y -= op.radius_y;
	offset = op.offset + (op.signed_output ? pixel_type_midpoint(image->type) : 0);
	if (image->alpha && op.smoothing)
		e = add_premultiplied(b, &op, offset);
	else
		e = add_filter(b, &op, offset, image->alpha);
	operation_fini(&op);
	if (!last)
		add_extend(b);
	return e;
}

static enum error add_calls(struct builder *b)
{
	struct plan *plan = b->plan;
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < plan->chain.count; i++)
		e = add_call(b, &plan->chain.call[i], i + 1 == plan->chain.count);
	if (!e)
		plan->step[plan->count - 1].dst = PLACE_OUT;
	return e;
}

enum error plan_new(const struct programs *programs, const struct chain *chain,
                    const struct image *image, struct plan **plan)
{
	struct builder b = {.programs = programs, .at = PLACE_IN, .type = image->type};
	struct problem problem;
	double pixel[BANDS_MAX];
	enum error e = chain_border_pixel(chain, image, pixel, &problem);

	if (e)
		return e;
	b.plan = calloc(1, sizeof *b.plan);
	if (!b.plan)
		return ERR_MEMORY;
	b.plan->image = *image;
	b.plan->chain = *chain;
	copy_weights(b.plan->border_pixel, pixel, image->bands);
	chain_halo(chain, &b.plan->halo_x, &b.plan->halo_y);
	b.expand_x = b.plan->halo_x;
	b.expand_y = b.plan->halo_y;
	e = add_calls(&b);
	if (e)
		plan_free(&b.plan);
	*plan = b.plan;
	return e;
}

void plan_free(struct plan **plan)
{
	if (!*plan)
		return;
	for (uint32_t i = 0; i < (*plan)->count; i++)
		if ((*plan)->step[i].weights)
			clReleaseMemObject((*plan)->step[i].weights);
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
