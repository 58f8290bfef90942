/* The device table only grows: an index is a device's number for the life of the service. */
#include "front/workers/device_table.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "base/text.h"
#include "front/base/metrics.h"
#include "front/workers/discovery.h"

const char *const device_states[] = {"down",    "starting", "up",     "quarantined",
                                     "probing", "leaving",  "removed"};

static struct device *devices[DEVICES_MAX + 1]; /* the one after the last is the next, or NULL */
static unsigned device_count;

struct worker *device_table_next(void)
{
	struct device **next = &devices[device_count];

	if (!*next && (*next = calloc(1, sizeof **next)))
		(*next)->worker.number = device_count;
	return *next ? &(*next)->worker : NULL;
}

struct device *device_table_add(const struct message_device *m)
{
	struct device *d;

	if (device_count == DEVICES_MAX || !device_table_next())
		return NULL;
	d = devices[device_count++];
	snprintf(d->label, sizeof d->label, "%s%u", device_types[m->type], d->worker.number);
	snprintf(d->ready.name, sizeof d->ready.name, "%s", m->name);
	d->found = *m;
	d->last_up = loop_now();
	return d;
}

struct device *device_table_find(const struct message_device *m)
{
	for (unsigned i = 0; i < device_count; i++) {
		const struct message_device *known = &devices[i]->found;

		if (known->platform == m->platform && known->device == m->device &&
		    known->type == m->type && !strcmp(known->name, m->name))
			return devices[i];
	}
	return NULL;
}

void device_table_clear(void)
{
	for (unsigned i = 0; i <= device_count; i++) {
		free(devices[i]);
		devices[i] = NULL;
	}
	device_count = 0;
}

unsigned devices_wanted(void)
{
	unsigned wanted = 0;

	for (unsigned i = 0; i < device_count; i++)
		wanted += !devices[i]->unwanted;
	return wanted;
}

struct device *device_get(unsigned i)
{
	return i < device_count ? devices[i] : NULL;
}

enum device_state device_state(const struct device *d)
{
	static const enum device_state states[][3] = {
	    [WORKER_STOPPED] = {DEVICE_DOWN, DEVICE_QUARANTINED, DEVICE_REMOVED},
	    [WORKER_STARTING] = {DEVICE_STARTING, DEVICE_PROBING, DEVICE_LEAVING},
	    [WORKER_UP] = {DEVICE_UP, DEVICE_PROBING, DEVICE_LEAVING},
	    [WORKER_DYING] = {DEVICE_DOWN, DEVICE_QUARANTINED, DEVICE_LEAVING},
	};

	return states[d->worker.state][d->unwanted ? 2 : d->quarantined];
}

uint64_t devices_up_of(uint64_t set)
{
	uint64_t up = 0;

	for (unsigned i = 0; i < device_count; i++)
		if (device_state(devices[i]) == DEVICE_UP)
			up |= UINT64_C(1) << i;
	return set ? up & set : up;
}

unsigned devices_up(void)
{
	return (unsigned)__builtin_popcountll(devices_up_of(0));
}

void devices_publish(void)
{
	static const char *const kinds[OBJECTS] = {
#define OBJECT(symbol, name, ...) name,
#include "wire/objects.def"
	};

	for (unsigned i = 0; i < device_count; i++) {
		const struct device *d = devices[i];
		const enum device_state state = device_state(d);

		if (state == DEVICE_REMOVED) { /* it has no gauges; its counters stay */
			metric_forget_gauges(d->label);
			continue;
		}
		metric_set(METRIC_DEVICE_UP, d->label, NULL, state == DEVICE_UP);
		for (enum device_state s = 0; s < DEVICE_STATES; s++)
			metric_set(METRIC_DEVICE_STATE, d->label, device_states[s], s == state);
		metric_set(METRIC_TILES_IN_FLIGHT, d->label, NULL, d->held_count);
		if (!d->window)
			continue;
		metric_set(METRIC_DEVICE_MEMORY, d->label, NULL, (double)d->ready.memory);
		metric_set(METRIC_PROGRAMS_PENDING, d->label, NULL, d->programs.pending);
		metric_set(METRIC_PROGRAMS_COMPILING, d->label, NULL, d->programs.compiling);
		for (enum object k = 0; k < OBJECTS; k++)
			metric_set(METRIC_OPENCL_OBJECTS, d->label, kinds[k], d->objects.live[k]);
	}
}

void devices_count_programs(uint32_t *built, uint32_t *pending)
{
	*built = *pending = 0;
	for (unsigned i = 0; i < device_count; i++) {
		const struct message_programs *programs = &devices[i]->programs;

		*built += programs->compiled + programs->cached;
		*pending += programs->pending;
	}
}

uint64_t devices_fitting(const char *pattern)
{
	uint64_t fitting = 0;

	for (unsigned i = 0; i < device_count; i++)
		if (!devices[i]->unwanted && (discovery_fits(pattern, &devices[i]->found) ||
		                              !fnmatch(pattern, devices[i]->label, FNM_CASEFOLD)))
			fitting |= UINT64_C(1) << i;
	return fitting;
}

void devices_describe(char *text, size_t size)
{
	char one[128];

	*text = '\0';
	for (unsigned i = 0; i < device_count; i++) {
		const struct device *d = devices[i];

		snprintf(one, sizeof one, "%s (%u:%u, %s)", d->label, d->found.platform,
		         d->found.device, d->found.name);
		if (!d->unwanted)
			list_add(text, size, one);
	}
}

unsigned devices_next_try(void)
{
	const uint64_t discovery = discovery_next_try();
	uint64_t min = discovery ? discovery : UINT64_MAX;

	for (unsigned i = 0; i < device_count; i++) {
		const struct worker *w = &devices[i]->worker;
		const uint64_t passed = (loop_now() - w->started) / 1000000;
		uint64_t left = devices[i]->ready.startup_ms;

		if (w->state == WORKER_STOPPED)
			left += loop_timer_left(&w->timer);
		else
			left -= passed < left ? passed : left;
		if (!devices[i]->unwanted && left < min)
			min = left;
	}
	return min > 1000 && min < UINT64_MAX ? (unsigned)((min + 999) / 1000) : 1;
}
