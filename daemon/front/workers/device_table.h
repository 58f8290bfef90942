/* The device table: every device that has been used, what the front knows of it, and what others
 * ask of all of them. The devices are changed by devices.c, and by reports.c as their workers
 * report. */
#ifndef FRONT_WORKERS_DEVICE_TABLE_H
#define FRONT_WORKERS_DEVICE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/jobs/plans.h"
#include "front/workers/arenas.h"
#include "front/workers/supervisor.h"

struct self_test;
struct task;

enum { DEVICES_MAX = 64, WINDOW_MAX = 128, CHOICES_MAX = 256 };

enum device_state {
	DEVICE_DOWN, /* no process; it is started again */
	DEVICE_STARTING,
	DEVICE_UP,          /* takes tiles */
	DEVICE_QUARANTINED, /* not to be trusted: no process until it is tried again */
	DEVICE_PROBING,     /* the same, started and given a test tile */
	DEVICE_LEAVING,     /* no pattern fits it any more: it finishes the tiles that it has */
	DEVICE_REMOVED,     /* and then has no process */
	DEVICE_STATES,
};

/* One that has been used. It keeps its place and its label for the life of the service, also when
 * it is removed: tiles, jobs and metrics know it by them. */
struct device {
	struct worker worker;
	struct message_device found; /* as the probe described it */
	bool unwanted;               /* no pattern fits it */
	bool fresh;                  /* wanted, and since then neither up nor failed */
	char label[16];              /* "gpu0", "cpu1": unique */
	char name[64];
	char driver[64];
	enum device_type type;
	uint64_t memory; /* bytes */
	uint32_t startup_ms;
	unsigned window; /* tiles that it may hold, of any size */
	bool stacks;     /* of small ones, more */
	struct task *held[WINDOW_MAX];
	unsigned held_count;
	uint64_t plan[PLANS_MAX];         /* by place: the number of the plan that it knows, or 0 */
	uint64_t tiles;                   /* filtered since the start of the service */
	struct message_programs programs; /* that its worker has built, or is to build */
	uint64_t programs_at;   /* loop_now() of the last news of what may hold up a launch */
	uint64_t programs_told; /* loop_now() of the last line on them; 0: none is due */
	struct message_choice *choices; /* of its tuner */
	unsigned choice_count;
	uint64_t reports;         /* messages of its worker that were not of a tile's end */
	unsigned failures;        /* each soon after the one before */
	uint64_t up_since;        /* loop_now(); 0: not up */
	bool quarantined;         /* until a test tile comes back right */
	struct arena_user arenas; /* fresh: since then it has filtered no tile */
	/* Test tiles that it has or, quarantined, is to have; or NULL. */
	struct self_test *self_test;
	uint64_t examined, distrusted; /* loop_now() when it last was, or 0 */
};

/* Devices for device_get(), removed ones too; those that are wanted; those that are up. */
unsigned devices_count(void);
unsigned devices_wanted(void);
unsigned devices_up(void);
/* How many programs all devices' workers have built, and are to build. */
void devices_count_programs(uint32_t *built, uint32_t *pending);
/* True while the first discovery of devices has not ended, or a worker is starting whose device has
 * not failed since it was wanted. */
bool devices_starting(void);
/* Seconds until the next attempt to get a device up, at least 1. */
unsigned devices_next_try(void);
struct device *device_get(unsigned i);

/* Those that are wanted and that a pattern fits, as one of the option `device` or by their labels:
 * bit i for device_get(i). */
uint64_t devices_fitting(const char *pattern);
/* True if one of these is up, or starting and has not failed since it was wanted. */
bool devices_hopeful(uint64_t devices);
/* Labels, places and names of those that are wanted, as a sentence's list, cut at the size. */
void devices_describe(char *text, size_t size);

enum device_state device_state(const struct device *device);
const char *device_state_name(enum device_state state);

/* For devices.c: lists a device that has been found, under the next number, with the label and the
 * names that follow from it; NULL without room or memory. Finds the one that was found as this one
 * before, or NULL. Frees all. */
struct device *device_table_add(const struct message_device *found);
struct device *device_table_find(const struct message_device *found);
void device_table_clear(void);

#endif
