#include "simulated.h"

#include <math.h>
#include <string.h>

enum { WINDOW = 4 };

const struct codec_owner *simulated_for_codecs;
static const struct device_owner *device_owner;
double simulated_time;
static double begun[DEVICES_MAX]; /* when the oldest tile was */

enum error devices_init(const struct device_owner *owner)
{
	device_owner = owner;
	return ERR_OK;
}

void devices_fini(void)
{
	device_table_clear();
}

void devices_check(bool blind)
{
	(void)blind;
}

bool device_has_room(const struct device *d, enum tile_form form)
{
	(void)form;
	return device_state(d) == DEVICE_UP && d->held_count < d->window;
}

bool device_send(struct device *d, struct task *task)
{
	if (!d->held_count)
		begun[d->worker.number] = simulated_time;
	task->attempts++;
	task->device = d->worker.number;
	d->held[d->held_count++] = task;
	d->load.units += task->units;
	return true;
}

void codecs_retire(unsigned arena)
{
	(void)arena;
}

enum error codecs_init(const struct codec_owner *owner)
{
	simulated_for_codecs = owner;
	return ERR_OK;
}

void codecs_fini(void)
{
}

bool simulated_devices(const double *ns_per_unit, unsigned count)
{
	const struct message_device found = {.type = DEVICE_CPU};

	device_table_clear();
	simulated_time = 0;
	for (unsigned i = 0; i < count; i++) {
		struct device *d = device_table_add(&found);

		if (!d)
			return false;
		d->window = WINDOW;
		d->worker.state = WORKER_UP;
		d->load = (struct load){.ns_per_unit = ns_per_unit[i]};
	}
	return true;
}

void simulated_up(unsigned device)
{
	device_get(device)->worker.state = WORKER_UP;
	device_owner->room();
}

static struct task *take_oldest(struct device *d)
{
	struct task *task = d->held[0];

	memmove(&d->held[0], &d->held[1], --d->held_count * sizeof *d->held);
	d->load.units -= task->units;
	return task;
}

void simulated_down(unsigned device)
{
	const struct message_tile_done done = {.error = ERR_DEVICE};
	struct device *d = device_get(device);

	d->worker.state = WORKER_STOPPED;
	while (d->held_count)
		device_owner->task_done(take_oldest(d), &done);
}

bool simulated_finish(unsigned device, enum error error)
{
	struct message_tile_done done = {.error = error};
	struct device *d = device_get(device);

	if (!d->held_count)
		return false;
	begun[device] = simulated_time;
	device_owner->task_done(take_oldest(d), &done);
	return true;
}

/* Returns the device that finishes a tile next, and when; INFINITY if none has one. */
static double soonest(unsigned *device)
{
	const struct device *d;
	double end = INFINITY;

	for (unsigned i = 0; (d = device_get(i)); i++) {
		double ends = begun[i];

		if (!d->held_count)
			continue;
		ends += d->held[0]->units * d->load.ns_per_unit;
		*device = ends < end ? i : *device;
		end = fmin(end, ends);
	}
	return end;
}

double simulated_next(void)
{
	unsigned device = 0;

	return soonest(&device);
}

bool simulated_step(void)
{
	unsigned device = 0;
	double end = soonest(&device);

	if (end == INFINITY)
		return false;
	simulated_time = end;
	return simulated_finish(device, ERR_OK);
}
