#include "common/grid.h"

#include <string.h>

#include "common/image.h"

static struct grid_axis axis_for(double sigma, uint32_t pixels)
{
	struct grid_axis axis = {.lattice = lattice_for_grid(sigma)};

	axis.span = lattice_span(&axis.lattice, 0, pixels);
	return axis;
}

struct grid grid_for(const double sigma[GRID_AXES], uint32_t width, uint32_t height, uint32_t bands)
{
	return (struct grid){
	    .axis = {[GRID_X] = axis_for(sigma[GRID_X], width),
	             [GRID_Y] = axis_for(sigma[GRID_Y], height)},
	    .bands = bands,
	};
}

uint64_t grid_words(const double sigma[GRID_AXES], uint32_t width, uint32_t height, uint32_t bands)
{
	struct grid grid;
	uint64_t words;

	if (width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX)
		return UINT32_MAX;
	grid = grid_for(sigma, width, height, bands);
	words =
	    ((uint64_t)grid.axis[GRID_X].span.count * grid.axis[GRID_Y].span.count * bands + 1) / 2;
	return words < UINT32_MAX ? words : UINT32_MAX;
}

float grid_get(const double *words, size_t i)
{
	float value;

	memcpy(&value, (const char *)words + i * sizeof value, sizeof value);
	return value;
}

void grid_weights(const struct grid_axis *axis, double *weights)
{
	const struct lattice *l = &axis->lattice;
	double spline[GRID_SPLINE_MAX];

	lattice_spline(l, spline);
	for (uint32_t tap = 0; tap < l->taps; tap++)
		for (uint32_t phase = 0; phase < l->stride; phase++)
			*weights++ = lattice_grow_weight(l, spline, tap, phase);
}
