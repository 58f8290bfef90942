#include "front/workers/device_load.h"

#include <math.h>

/* Multiply-adds per sample for a Gaussian on a lattice: nearly independent of its sigma. */
static const double LATTICE_COST = 40;

/* Multiply-adds per sample for decoding or encoding a JPEG, as measured on a GPU. */
static const double SIDE_COST = 10;

/* Multiply-adds per sample. The conversion to YCbCr and back costs about six. */
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

double cost_of_area(const struct chain *chain, const struct image *image, uint32_t width,
                    uint32_t height)
{
	double across = width, down = height, work = 0;
	struct geometry g;

	if (chain_geometry(chain, image, &g, NULL))
		g.resizes = false; /* a codec worker would have refused it */
	for (uint32_t i = chain->count; i-- > 0;) {
		const struct filter_call *call = &chain->call[i];
		bool all_read = filter_lattice(call).stride; /* works on every pixel it reads */
		double cost = call_cost(call), made = across * down;
		uint32_t x, y;

		if (g.resizes && call->filter == FILTER_RESIZE) {
			work += made * resizing_taps(&g.scale[0]);
			across *= g.scale[0].step;
			work += across * down * resizing_taps(&g.scale[1]);
			down *= g.scale[1].step;
			continue;
		}
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

/* A tile's weight grows with its size, since a small tile's time is mostly launch overhead. A
 * delayed tile counts as at most four times the expected time. */
void load_learn(struct load *load, double units, uint64_t ns)
{
	double measured = (double)ns / units;
	double weight = units / (units + 1e8);

	if (ns)
		load->ns_per_unit +=
		    weight * (fmin(measured, 4 * load->ns_per_unit) - load->ns_per_unit);
}

struct device *load_soonest(double units, uint64_t allowed)
{
	struct device *best = NULL, *d;
	double min = INFINITY;

	for (unsigned i = 0; (d = device_get(i)); i++) {
		const double ns = (d->load.units + units) * d->load.ns_per_unit;

		if (ns >= min || (allowed && !(allowed >> i & 1)) || device_state(d) != DEVICE_UP)
			continue;
		best = d;
		min = ns;
	}
	return best;
}

double load_together(double units)
{
	const struct device *d;
	double speed = 0;

	for (unsigned i = 0; (d = device_get(i)); i++)
		if (device_state(d) == DEVICE_UP)
			speed += 1 / d->load.ns_per_unit;
	return speed > 0 ? units / speed : 0;
}

uint64_t load_samples_max(const struct chain *chain)
{
	/* The target time of a tile, and the least work that is worth a launch. */
	const double tile_ns = 1e6, samples_min = 65536;
	/* Devices that are this many times slower than the fastest do not count. */
	const double too_slow = 16;
	double fastest = INFINITY, slowest = 0, samples;
	const struct device *d;

	for (unsigned i = 0; (d = device_get(i)); i++)
		if (!d->unwanted)
			fastest = fmin(fastest, d->load.ns_per_unit);
	for (unsigned i = 0; (d = device_get(i)); i++)
		if (!d->unwanted && d->load.ns_per_unit <= fastest * too_slow)
			slowest = fmax(slowest, d->load.ns_per_unit);
	samples = slowest > 0 ? tile_ns / (slowest * cost_per_sample(chain)) : samples_min;
	return (uint64_t)fmax(samples, samples_min);
}
