/* Devices and codec workers that are only simulated, for what the scheduler does with them: its
 * queues, table of devices and decisions are the real ones, time is counted here. To be linked in
 * the place of devices.c and codecs.c, with a codec_task_done() of the program's own. */
#pragma once

#include "front/workers/codecs.h"
#include "front/workers/device_table.h"
#include "front/workers/devices.h"

/* The owner that the scheduler has given codecs. */
extern const struct codec_owner *simulated_for_codecs;

/* Nanoseconds, from 0 at simulated_devices(). */
extern double simulated_time;

/* So many devices from now on, up and idle, that hold four tiles each and filter one after another
 * at these speeds. False without memory. */
bool simulated_devices(const double *ns_per_unit, unsigned count);

/* A device goes down, with its tiles, or comes back. */
void simulated_down(unsigned device);
void simulated_up(unsigned device);

/* Finishes the oldest tile of a device, with this error, at once; false if it has none. */
bool simulated_finish(unsigned device, enum error error);

/* When the next tile will be finished; INFINITY if no device has one. */
double simulated_next(void);

/* Lets time pass until the next tile is finished; false if no device has one. */
bool simulated_step(void);
