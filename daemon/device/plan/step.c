/* Steps, and the arithmetic of their regions: size, layout in a buffer, and bytes. In a direction
 * that has been shrunk to a lattice, columns or rows are points. */
#include "device/plan/step.h"

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

struct lattice_span region_points_across(const struct step *step, const struct tile *tile)
{
	return lattice_span(&step->points.lattice, (int32_t)tile->x0 - (int32_t)step->points.grow_x,
	                    tile->width + 2 * step->points.grow_x);
}

struct lattice_span region_points_down(const struct step *step, const struct tile *tile)
{
	return lattice_span(&step->points.lattice, (int32_t)tile->y0 - (int32_t)step->points.grow_y,
	                    tile->height + 2 * step->points.grow_y);
}

uint32_t region_columns(const struct step *step, const struct tile *tile)
{
	uint32_t inner = step->points.across ? region_points_across(step, tile).count : tile->width;

	return inner + 2 * step->expand_x;
}

uint32_t region_rows(const struct step *step, const struct tile *tile)
{
	uint32_t inner = step->points.down ? region_points_down(step, tile).count : tile->height;

	return inner + 2 * step->expand_y;
}

bool region_is_transposed(const struct step *step, bool dst)
{
	return step->kernel == KERNEL_SEP_TWO_PASS && step->pass == !dst;
}

uint64_t region_pack(const struct step *step, const struct tile *tile, struct view *view)
{
	const uint64_t align = ROW_ALIGNMENT - 1,
	               pixel = step->bands * pixel_type_size(step->dst_type);
	const uint64_t width = region_columns(step, tile), rows = region_rows(step, tile);
	const uint64_t lead = (step->expand_x * pixel + align) & ~align;

	if (region_is_transposed(step, true)) {
		view->pitch = (uint32_t)row_pitch((rows + 2 * step->radius_y) * sizeof(float));
		view->origin = 0;
		return view->pitch * width * step->bands;
	}
	view->pitch = (uint32_t)row_pitch(lead + (width - step->expand_x) * pixel);
	view->origin = lead + (uint64_t)step->expand_y * view->pitch;
	return view->pitch * rows;
}

/* Pixels of the tile's result, expanded by x and y on each side. */
static uint64_t expanded_pixels(const struct tile *tile, uint64_t x, uint64_t y)
{
	return (tile->width + 2 * x) * (tile->height + 2 * y);
}

/* Pixels or points that a step to or from a lattice reads. */
static uint64_t points_read(const struct step *step, const struct tile *tile)
{
	const struct lattice *l = &step->points.lattice;
	uint64_t columns = region_columns(step, tile), rows = region_rows(step, tile);

	if (step->kernel == KERNEL_SHRINK_DOWN)
		return columns * ((rows - 1) * l->stride + 2 * l->half + 1);
	if (step->kernel == KERNEL_SHRINK_ACROSS)
		return ((columns - 1) * l->stride + 2 * l->half + 1) * rows;
	if (step->kernel == KERNEL_GROW_ACROSS)
		return (uint64_t)region_points_across(step, tile).count * rows;
	if (step->kernel == KERNEL_GROW_DOWN)
		return columns * region_points_down(step, tile).count;
	return (columns + 2 * step->radius_x) * (rows + 2 * step->radius_y);
}

uint64_t region_bytes(const struct step *step, const struct tile *tile)
{
	uint64_t x = step->expand_x, y = step->expand_y;
	uint64_t read = expanded_pixels(tile, x + step->radius_x, y + step->radius_y);
	uint64_t written = (uint64_t)region_columns(step, tile) * region_rows(step, tile), bytes;

	if (step->kernel == KERNEL_EXTEND) {
		written -= expanded_pixels(tile, 0, 0); /* roughly the pixels outside the image */
		read = written;
	}
	if (step->points.lattice.stride)
		read = points_read(step, tile);
	bytes = read * pixel_type_size(step->src_type) + written * pixel_type_size(step->dst_type);
	if (step->kernel == KERNEL_UNSHARP || step->kernel == KERNEL_SUBTRACT ||
	    step->kernel == KERNEL_THRESHOLD_LOCAL || step->kernel == KERNEL_BLEND)
		bytes += written * pixel_type_size(step->original_type);
	return step->bands * bytes;
}
