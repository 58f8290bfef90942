/* The loads are in one array, because the scheduler scans them for every tile. */
#include "front/workers/device_load.h"

#include <math.h>

#include "front/workers/device_table.h"

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

static struct load {
	double units;       /* of the tiles that the device holds */
	double ns_per_unit; /* running estimate */
	bool takes;         /* tiles */
} loads[DEVICES_MAX];

void load_start(unsigned device, double ns_per_unit)
{
	loads[device] = (struct load){.ns_per_unit = ns_per_unit};
}

void load_open(unsigned device, bool takes)
{
	loads[device].takes = takes;
}

void load_add(unsigned device, double units)
{
	loads[device].units += units;
}

void load_clear(unsigned device)
{
	loads[device].units = 0;
}

/* A tile's weight grows with its size, since a small tile's time is mostly launch overhead. A
 * delayed tile counts as at most four times the expected time. */
void load_learn(unsigned device, double units, uint64_t ns)
{
	double *speed = &loads[device].ns_per_unit;
	double measured = (double)ns / units, max = 4 * *speed;
	double weight = units / (units + 1e8);

	if (ns)
		*speed += weight * ((measured < max ? measured : max) - *speed);
}

double load_ns_per_unit(unsigned device)
{
	return loads[device].ns_per_unit;
}

double load_ns(unsigned device)
{
	return loads[device].units * loads[device].ns_per_unit;
}

unsigned load_soonest(unsigned devices, double units, uint64_t allowed)
{
	unsigned best = devices;
	double min = INFINITY;

	for (unsigned i = 0; i < devices; i++) {
		const struct load *load = &loads[i];
		bool may = load->takes && (!allowed || allowed >> i & 1);
		double ns = may ? (load->units + units) * load->ns_per_unit : INFINITY;

		best = ns < min ? i : best;
		min = ns < min ? ns : min;
	}
	return best;
}

double load_together(unsigned devices, double units)
{
	double speed = 0;

	for (unsigned i = 0; i < devices; i++)
		if (loads[i].takes)
			speed += 1 / loads[i].ns_per_unit;
	return speed > 0 ? units / speed : 0;
}
