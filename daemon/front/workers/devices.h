/* The life of the devices: one worker each, with a window of tiles. */
#ifndef FRONT_WORKERS_DEVICES_H
#define FRONT_WORKERS_DEVICES_H

#include <stdbool.h>

#include "front/config/config.h"
#include "front/jobs/job.h"

struct device;

/* What the scheduler wants to know. */
struct device_owner {
	/* A tile is back, filtered or failed (then the device may still be up). */
	void (*task_done)(struct task *task, const struct message_tile_done *done);
	/* The tile's device is gone. */
	void (*task_lost)(struct task *task);
	/* Its process cannot be ended: it may yet write to this arena. */
	void (*arena_lost)(unsigned arena);
	/* A device has room, or has come up. */
	void (*room)(void);
};

/* Looks for devices and starts a worker for each: for all GPUs, else for the CPUs. */
enum error devices_init(const struct config *config, const struct device_owner *owner) MUST_CHECK;
void devices_fini(void);

/* A result of the i-th device on this plan, by these kernels (a bit of each), is not as it should
 * be, by a comparison whose input a client chose: while it goes on, it is given test tiles, and
 * quarantined if one comes back wrong. At most once a second; without a device that is up, not at
 * all. */
void device_examine(unsigned i, const struct plan *plan, uint64_t kernels);
/* The same tile has come out of it in two ways, as a codec worker says: it is quarantined; but not
 * again within two minutes, in which it is examined. */
void device_distrust(unsigned i, const struct plan *plan, uint64_t kernels);

/* True if it is up and its window is not full. */
bool device_has_room(const struct device *device);

/* Gives the device a task of a job whose image is known. False if the device failed on that: the
 * task is then still the caller's. */
bool device_send(struct device *device, struct task *task);

#endif
