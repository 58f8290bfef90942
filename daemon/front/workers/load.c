/* The loads are in one array, because the scheduler scans them for every tile. */
#include "front/workers/load.h"

#include <math.h>

#include "front/workers/device_table.h"

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
