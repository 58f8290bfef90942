/* Steps: their parameters in the form that kernels take, and the arithmetic of their regions: size,
 * layout in a buffer, bytes. In directions shrunk to a lattice, columns or rows are points. */
#include "device/plan/step.h"

#include <math.h>
#include <sys/param.h>

#include "device/plan/weights.h"

void step_retain_kernel(const struct step *step)
{
	clRetainKernel(object_add(OBJECT_STEP_KERNEL, step->function));
}

void step_retain(const struct step *step)
{
	if (step->function)
		step_retain_kernel(step);
	if (step->weights)
		clRetainMemObject(step->weights);
	object_add(OBJECT_STEP_WEIGHTS, step->weights);
}

void step_release(struct step *step)
{
	object_release(OBJECT_STEP_KERNEL, step->function);
	object_release(OBJECT_STEP_WEIGHTS, step->weights);
	*step = (struct step){0};
}

/* Returns the largest float (integer) not above a number: samples are above both or neither. */
static float not_above(double number, enum pixel_type type)
{
	const float nearest = (float)(type == PIXEL_F32 ? number : floor(number));

	return nearest > number ? nextafterf(nearest, -INFINITY) : nearest;
}

void step_set_comparison(struct step *step, const struct operation *op, enum pixel_type image_type)
{
	const double full = pixel_type_rows[image_type].full_scale;
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

/* Sets the weights of a gradient. Directions fill the range of integers, with 0 in the middle. */
static void fill_gradient(struct step *step, const struct operation *op, enum pixel_type image_type)
{
	const double full = pixel_type_rows[image_type].full_scale;

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

/* Work-items share a block of pixelate if it is wide enough for a power of two of them. */
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

enum error step_fill(const struct device *device, const struct work *work, struct step *step)
{
	const struct operation *op = work->operation;
	const double full = pixel_type_rows[work->image_type].full_scale;
	const double log2_e = 1 / log(2);
	bool as_matrix = kernel_row(step->kernel)->operations & 1u << OPERATION_MATRIX;

	step->program = step->src_type = step->dst_type = work->type;
	step->bands = work->bands;
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
		step_set_comparison(step, op, work->image_type);
	if (op->kind == OPERATION_BILATERAL) {
		step->space = (float)(op->space * log2_e);
		step->range = (float)(op->range / (full * full) * log2_e);
	}
	if (op->kind == OPERATION_CANNY) {
		step->low = limit_of(op->low * full, step->program);
		step->high = limit_of(op->high * full, step->program);
	}
	if (op->plane) {
		step->plane.words = op->kind == OPERATION_CLAHE
		                        ? op->tiles
		                        : 2 * (uint32_t)(op->plane_words / op->plane_height);
		step->plane.width = (cl_int)op->plane_width;
		step->plane.height = (cl_int)op->plane_height;
		/* The plane lacks equally much on either side. */
		step->plane.x = ((cl_int)step->image_width - step->plane.width) / 2;
		step->plane.y = ((cl_int)step->image_height - step->plane.height) / 2;
	}
	if (op->entries) {
		step->tables = op->tables;
		step->entries = op->entries;
		step->places = (float)((op->entries - 1) / full);
	}
	if (op->kind == OPERATION_RESIZE) {
		step->resize.out = variant_resize_pixels(op, step->bands, step->shape.group_x);
		return weights_new_ring(device, step->geometry, step->program, &step->resize,
		                        &step->weights);
	}
	if (op->kind == OPERATION_LUT) {
		if (step->program != PIXEL_F32)
			step->entries = (uint32_t)full + 1;
		return weights_new_tables(device, op, step->program, full, &step->weights);
	}
	return weights_new(device, op, variant_rows[step->kernel].weights, as_matrix, step->shape.y,
	                   &step->weights);
}

struct extent step_source(const struct step *step, const struct tile *tile, bool down)
{
	return geometry_source(step->geometry, down, down ? tile->y0 : tile->x0,
	                       down ? tile->height : tile->width);
}

struct tile step_tile(const struct step *step, const struct tile *tile)
{
	struct tile own = *tile;
	struct extent of;

	if (step->stage != STAGE_RESULT) {
		of = step_source(step, tile, false);
		own.x0 = (uint32_t)of.first;
		own.width = of.count;
	}
	if (step->stage == STAGE_SOURCE) {
		of = step_source(step, tile, true);
		own.y0 = (uint32_t)of.first;
		own.height = of.count;
	}
	return own;
}

struct lattice_span region_points(const struct step *step, const struct tile *tile, bool down)
{
	const uint32_t grow = down ? step->points.grow_y : step->points.grow_x;

	return lattice_span(&step->points.lattice,
	                    (int32_t)(down ? tile->y0 : tile->x0) - (int32_t)grow,
	                    (down ? tile->height : tile->width) + 2 * grow);
}

uint32_t region_side(const struct step *step, const struct tile *tile, bool down)
{
	const uint32_t pixels = down ? tile->height : tile->width;
	const bool points = down ? step->points.down : step->points.across;

	return (points ? region_points(step, tile, down).count : pixels) +
	       2 * (down ? step->expand_y : step->expand_x);
}

bool region_is_transposed(const struct step *step, bool dst)
{
	return step->kernel == KERNEL_SEP_TWO_PASS && step->pass == !dst;
}

uint64_t region_pack(const struct step *step, const struct tile *result, struct view *view)
{
	const struct tile own = step_tile(step, result), *tile = &own;
	const uint64_t align = ROW_ALIGNMENT - 1,
	               pixel = step->bands * pixel_type_rows[step->dst_type].size;
	const uint64_t width = region_side(step, tile, false), rows = region_side(step, tile, true);
	const uint64_t lead = (step->expand_x * pixel + align) & ~align;

	if (region_is_transposed(step, true)) {
		view->pitch = (uint32_t)row_pitch((rows + 2 * step->radius_y) * sizeof(float));
		view->origin = 0;
		return view->pitch * width * step->bands;
	}
	view->pitch = (uint32_t)row_pitch(lead + (width - step->expand_x) * pixel);
	view->origin = lead + (uint64_t)step->expand_y * view->pitch;
	/* Woven rows are whole groups; resize_across reads the rest of a vector. */
	return view->pitch * (step->kernel == KERNEL_RESIZE_DOWN
	                          ? roundup(rows, (uint64_t)step->shape.y)
	                          : rows) +
	       ROW_ALIGNMENT;
}

void region_lay_out(const struct step *step, const struct tile *tile, struct view views[PLACES])
{
	if (step->dst >= PLACE_A && step->kernel != KERNEL_EXTEND)
		region_pack(step, tile, &views[step->dst]);
}

/* Returns the number of pixels of the tile's result, expanded by x and y on each side. */
static uint64_t expanded_pixels(const struct tile *tile, uint64_t x, uint64_t y)
{
	return (tile->width + 2 * x) * (tile->height + 2 * y);
}

/* Returns the number of pixels or points that a step to or from a lattice reads. */
static uint64_t points_read(const struct step *step, const struct tile *tile)
{
	const struct lattice *l = &step->points.lattice;
	uint64_t columns = region_side(step, tile, false), rows = region_side(step, tile, true);

	if (step->kernel == KERNEL_SHRINK_DOWN)
		return columns * ((rows - 1) * l->stride + 2 * l->half + 1);
	if (step->kernel == KERNEL_SHRINK_ACROSS)
		return ((columns - 1) * l->stride + 2 * l->half + 1) * rows;
	if (step->kernel == KERNEL_GROW_ACROSS)
		return (uint64_t)region_points(step, tile, false).count * rows;
	if (step->kernel == KERNEL_GROW_DOWN)
		return columns * region_points(step, tile, true).count;
	return (columns + 2 * step->radius_x) * (rows + 2 * step->radius_y);
}

/* Returns the number of pixels that a step of a resize reads. */
static uint64_t resized_read(const struct step *step, const struct tile *tile)
{
	const bool down = step->kernel != KERNEL_RESIZE_ACROSS;
	const bool across = step->kernel != KERNEL_RESIZE_DOWN;
	const uint64_t width =
	    across ? step_source(step, tile, false).count : region_side(step, tile, false);

	return width * (down ? step_source(step, tile, true).count : region_side(step, tile, true));
}

uint64_t region_bytes(const struct step *step, const struct tile *result)
{
	const struct tile own = step_tile(step, result), *tile = &own;
	uint64_t x = step->expand_x, y = step->expand_y;
	uint64_t read = expanded_pixels(tile, x + step->radius_x, y + step->radius_y);
	uint64_t written = (uint64_t)region_side(step, tile, false) * region_side(step, tile, true),
	         bytes;

	if (step->kernel == KERNEL_EXTEND) {
		written -= expanded_pixels(tile, 0, 0); /* roughly the pixels outside the image */
		read = written;
	}
	if (step->points.lattice.stride)
		read = points_read(step, tile);
	else if (step->resize.words)
		read = resized_read(step, tile);
	bytes = read * pixel_type_rows[step->src_type].size +
	        written * pixel_type_rows[step->dst_type].size;
	if (step->kernel == KERNEL_UNSHARP || step->kernel == KERNEL_SUBTRACT ||
	    step->kernel == KERNEL_THRESHOLD_LOCAL || step->kernel == KERNEL_BLEND)
		bytes += written * pixel_type_rows[step->original_type].size;
	return step->bands * bytes;
}
