/* The devices: each has a worker process, and holds a limited number of tiles (its window). */
#pragma once

#include <stdbool.h>

#include "front/jobs/job.h"

struct device;

/* The scheduler's callbacks. */
struct device_owner {
	/* A tile is back, filtered or failed (ERR_DEVICE if the process has ended), and the device
	 * has room if it is still up. */
	void (*task_done)(struct task *task, const struct message_tile_done *done);
	/* The device's process cannot be killed and may still write to this arena. */
	void (*arena_lost)(unsigned arena);
	/* A device has come up. */
	void (*room)(void);
};

/* Starts device discovery, and then a worker for each device that matches the option `device`. */
enum error devices_init(const struct device_owner *owner) MUST_CHECK;
void devices_fini(void);

/* Kills the workers of devices that have held a tile for too long, unless the loop was held up, and
 * shortens quarantines while no device is up. Must be called a few times a second. */
void devices_check(bool blind);

/* Makes the i-th device filter test tiles, because its result with this plan, by these kernels,
 * differed from the reference. It stays in use meanwhile, since a client chose that input; a wrong
 * test tile leads to quarantine. At most once a second, and only if the device is up. */
void device_examine(unsigned i, const struct plan *plan, const struct kernel_set *kernels);
/* Quarantines the i-th device because a codec worker reports two different results of it for one
 * tile. Within two minutes after the last time it is only examined. */
void device_distrust(unsigned i, const struct plan *plan, const struct kernel_set *kernels);

/* Returns true if the device is up and may get another tile of this form. */
bool device_has_room(const struct device *device, enum tile_form form);

/* Gives a task to the device, which must be up and hold fewer than WINDOW_MAX tiles, until
 * task_done(). Returns false if the device failed; the task is then still the caller's. */
bool device_send(struct device *device, struct task *task);
