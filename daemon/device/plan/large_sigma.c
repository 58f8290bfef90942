/* Five steps, or six if the filter takes two: shrink the image to lattice points (down, then
 * across), filter the points, and grow them back to pixels (across, then down). In a direction that
 * has been shrunk, regions are measured in points. */
#include "device/plan/large_sigma.h"

#include <string.h>

#include "device/plan/weights.h"

/* From the next step on, columns are lattice points, with `points` more on each side (across), or
 * pixels of the filter's result. */
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
	struct step step = builder_begin_step(b, kernel, b->type, PIXEL_F32);
	enum error e =
	    weights_new_spline(programs_device(b->programs), &b->points.lattice, &step.weights);

	if (!e)
		builder_add_general(b, &step);
	return e;
}

static enum error add_grow(struct builder *b, enum kernel kernel, enum pixel_type to,
                           enum place original, uint32_t keep)
{
	struct step step = builder_begin_step(b, kernel, to, to);
	enum error e =
	    weights_new_grow(programs_device(b->programs), &b->points.lattice, &step.weights);

	step.original = original;
	step.original_type = to;
	step.keep = keep;
	if (!e)
		builder_add_general(b, &step);
	return e;
}

/* Appends the filter on the lattice points. */
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
	e = builder_add_filter(b, &between, 0, 0, 0);
	b->width = width;
	return e;
}

enum error large_sigma_add(struct builder *b, const struct operation *op, uint32_t keep)
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
