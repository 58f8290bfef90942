#include "front/workers/cost.h"

/* Multiply-adds a sample for a Gaussian on a lattice: nearly independent of its sigma. */
static const double LATTICE_COST = 40;

/* Multiply-adds a sample for decoding or encoding a JPEG, as measured on a GPU. */
static const double SIDE_COST = 10;

/* Multiply-adds a sample. The conversion to YCbCr and back costs about six. */
static double call_cost(const struct filter_call *call)
{
	bool ycbcr = call->channels == CHANNELS_LUMA || call->channels == CHANNELS_CHROMA;
	struct lattice lattice = filter_lattice(call);
	double cost = LATTICE_COST;
	uint32_t x, y;

	filter_radius(call, &x, &y);
	if (!lattice.stride)
		cost = operation_terms(filter_call_operation(call), x, y);
	return cost + (ycbcr ? 6 : 0);
}

double cost_per_sample(const struct chain *chain)
{
	double cost = 0;

	for (uint32_t i = 0; i < chain->count; i++)
		cost += call_cost(&chain->call[i]);
	return cost;
}

double cost_of_area(const struct chain *chain, uint32_t width, uint32_t height)
{
	double across = width, down = height, work = 0;

	for (uint32_t i = chain->count; i-- > 0;) {
		const struct filter_call *call = &chain->call[i];
		bool all_read = filter_lattice(call).stride; /* works on every pixel it reads */
		double cost = call_cost(call), made = across * down;
		uint32_t x, y;

		filter_radius(call, &x, &y);
		across += 2.0 * x;
		down += 2.0 * y;
		work += cost * (all_read ? across * down : made);
	}
	return work;
}

double cost_of_jpeg(const struct image *image, enum tile_form form)
{
	double sides = (form & TILE_DECODE ? 1 : 0) + (form & TILE_ENCODE ? 1 : 0);

	return sides * SIDE_COST * image->width * image->height * image->bands;
}
