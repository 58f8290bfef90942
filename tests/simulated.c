#include "simulated.h"

#include <math.h>
#include <string.h>

enum { WINDOW = 4 };

const struct codec_owner *simulated_for_codecs;
const struct device_owner *simulated_for_devices;
double simulated_time;
struct load device_loads[DEVICES_MAX];
static struct device devices[DEVICES_MAX];
static double begun[DEVICES_MAX]; /* when the oldest tile was */
static unsigned device_count;

enum error devices_init(const struct config *config, const struct device_owner *owner)
{
	(void)config;
	simulated_for_devices = owner;
	return ERR_OK;
}

void devices_fini(void)
{
}

unsigned devices_count(void)
{
	return device_count;
}

unsigned devices_up(void)
{
	unsigned up = 0;

	for (unsigned i = 0; i < device_count; i++)
		up += device_state(&devices[i]) == DEVICE_UP;
	return up;
}

bool devices_hopeful(uint64_t which)
{
	for (unsigned i = 0; i < device_count; i++)
		if (which >> i & 1 && device_state(&devices[i]) == DEVICE_UP)
			return true;
	return false;
}

bool devices_starting(void)
{
	return false;
}

struct device *device_get(unsigned i)
{
	return &devices[i];
}

enum device_state device_state(const struct device *d)
{
	return d->worker.state == WORKER_UP ? DEVICE_UP : DEVICE_DOWN;
}

bool device_has_room(const struct device *d)
{
	return device_state(d) == DEVICE_UP && d->held_count < d->window;
}

bool device_send(struct device *d, struct task *task)
{
	if (!d->held_count)
		begun[d->worker.number] = simulated_time;
	task->attempts++;
	task->device = d->worker.number;
	d->held[d->held_count++] = task;
	device_loads[d->worker.number].units += task->units;
	return true;
}

void devices_drop_plan(const struct plan *plan)
{
	(void)plan;
}

void devices_add_arena(unsigned arena)
{
	(void)arena;
}

void devices_drop_arena(unsigned arena)
{
	(void)arena;
}

enum error codecs_init(const struct config *config, const struct codec_owner *owner)
{
	(void)config;
	simulated_for_codecs = owner;
	return ERR_OK;
}

void codecs_fini(void)
{
}

void simulated_devices(const double *ns_per_unit, unsigned count)
{
	memset(devices, 0, sizeof devices);
	simulated_time = 0;
	device_count = count;
	for (unsigned i = 0; i < count; i++) {
		devices[i].worker.number = i;
		devices[i].window = WINDOW;
		device_loads[i] = (struct load){0, ns_per_unit[i], true};
		devices[i].worker.state = WORKER_UP;
	}
}

void simulated_up(unsigned device)
{
	devices[device].worker.state = WORKER_UP;
	device_loads[device].takes = true;
	simulated_for_devices->room();
}

static struct task *take_oldest(unsigned device)
{
	struct device *d = &devices[device];
	struct task *task = d->held[0];

	memmove(&d->held[0], &d->held[1], --d->held_count * sizeof *d->held);
	device_loads[device].units -= task->units;
	return task;
}

void simulated_down(unsigned device)
{
	devices[device].worker.state = WORKER_STOPPED;
	while (devices[device].held_count)
		simulated_for_devices->task_lost(take_oldest(device));
}

bool simulated_finish(unsigned device, enum error error)
{
	struct message_tile_done done = {.error = error};

	if (!devices[device].held_count)
		return false;
	begun[device] = simulated_time;
	simulated_for_devices->task_done(take_oldest(device), &done);
	simulated_for_devices->room();
	return true;
}

bool simulated_step(void)
{
	double soonest = INFINITY;
	unsigned device = 0;

	for (unsigned i = 0; i < device_count; i++) {
		double end = begun[i];

		if (!devices[i].held_count)
			continue;
		end += devices[i].held[0]->units * device_loads[i].ns_per_unit;
		device = end < soonest ? i : device;
		soonest = end < soonest ? end : soonest;
	}
	if (soonest == INFINITY)
		return false;
	simulated_time = soonest;
	return simulated_finish(device, ERR_OK);
}
