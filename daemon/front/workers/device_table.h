/* The device table: every device that has been used, its state, and queries over all devices. Only
 * devices.c changes devices, and reports.c when their workers report. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "front/jobs/plans.h"
#include "front/workers/arenas.h"
#include "front/workers/supervisor.h"

struct self_test;
struct task;

enum { DEVICES_MAX = 64, WINDOW_MAX = 128, CHOICES_MAX = 256 };

enum device_state {
	DEVICE_DOWN, /* no process; will be restarted */
	DEVICE_STARTING,
	DEVICE_UP,          /* takes tiles */
	DEVICE_QUARANTINED, /* not trusted: no process until the next attempt */
	DEVICE_PROBING,     /* quarantined, but started to filter test tiles */
	DEVICE_LEAVING,     /* no longer matches `device`: finishes its tiles */
	DEVICE_REMOVED,     /* no longer matches `device`: no process */
	DEVICE_STATES,
};
extern const char *const device_states[];

/* Work in units of one multiply-add, such as that of a device's tiles, and its speed at it. */
struct load {
	double units;
	double ns_per_unit; /* running estimate */
};

/* A device that has been used. It keeps its number and label for the life of the service, even when
 * removed: tiles, jobs and metrics refer to it by them. */
struct device {
	struct worker worker;
	struct message_device found; /* as the probe described it */
	bool unwanted;               /* does not match the option `device` */
	bool fresh;                  /* has neither come up nor failed since it was wanted */
	char label[16];              /* "gpu0", "cpu1": unique */
	/* its worker's last report; before, only the name, from the probe */
	struct message_ready ready;
	uint64_t jpeg_distrusted; /* loop_now() when it gave a wrong JPEG; 0: never */
	unsigned window; /* maximum number of tiles it may hold, of any size; 0: not yet up */
	struct load load;
	struct task *held[WINDOW_MAX];
	unsigned held_count;
	uint64_t plan[PLANS_MAX];         /* by place: id of the plan it has been sent, or 0 */
	uint64_t tiles;                   /* filtered since the service started */
	struct message_programs programs; /* its worker's last report of programs */
	struct message_objects objects;
	uint64_t programs_at;   /* loop_now() when a compilation last could block launches */
	uint64_t programs_told; /* loop_now() of the last log line on compiling; 0: none */
	struct message_choice choices[CHOICES_MAX]; /* its tuner's */
	unsigned choice_count;
	uint64_t reports;         /* its worker's messages, except MSG_TILE_DONE */
	unsigned failures;        /* that served time has not made good yet */
	uint64_t served_ns;       /* served time that has made none good yet */
	uint64_t up_since;        /* loop_now(); 0: not up, and its process has ended */
	bool quarantined;         /* until it filters the test tiles correctly */
	struct arena_user arenas; /* fresh: no tile filtered since the last new arena */
	/* Test tiles that it holds or will get when it is up again, or NULL; owned. The time when
	 * it got them, as loop_now(), 0: it has none; and the longest wait for a program. */
	struct self_test *self_test;
	uint64_t test_sent;
	uint32_t test_wait_ms;
	uint64_t examined, distrusted; /* loop_now() of the last time, or 0 */
	/* loop_now() when the scheduler last saw it up or starting for the first time */
	uint64_t last_up;
};

/* Returns a device by its number, also a removed one; NULL after the last. */
struct device *device_get(unsigned i);
/* Count the wanted devices; those that are up. */
unsigned devices_wanted(void);
unsigned devices_up(void);
/* Returns the devices of a set that are up, as bits; 0: of all. */
uint64_t devices_up_of(uint64_t set);
/* Sets the gauges of all devices. */
void devices_publish(void);
/* Counts the programs that all devices' workers have built, and have yet to build. */
void devices_count_programs(uint32_t *built, uint32_t *pending);
/* Returns the seconds until a device is expected to be up, at least 1. */
unsigned devices_next_try(void);

/* Returns the wanted devices whose label matches a pattern, or that match it as a value of the
 * option `device`: bit i for device_get(i). */
uint64_t devices_fitting(const char *pattern);
/* Writes a list of the wanted devices, as "gpu0 (0:0, NAME), …", truncated to `size` bytes. */
void devices_describe(char *text, size_t size);

enum device_state device_state(const struct device *device);

/* For devices.c. device_table_add() adds a discovered device under the next number, with the worker
 * that device_table_next() returns; NULL if the table is full or memory runs out.
 * device_table_find() returns the device that an earlier discovery described identically, or NULL.
 * device_table_clear() frees all. */
struct worker *device_table_next(void);
struct device *device_table_add(const struct message_device *found);
struct device *device_table_find(const struct message_device *found);
void device_table_clear(void);
