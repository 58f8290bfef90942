/* Discovers OpenCL devices in a worker, so that a driver that hangs or crashes cannot harm the
 * front; and selects devices by the patterns of the option `device`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "front/workers/supervisor.h"

/* Starts a discovery in the worker next(). At its end, and at each discovery_reload(), calls
 * `report` for every found device; wanted: a pattern matches it. If none is, repeats discovery
 * after some seconds. `report` may start that worker anew, for a device; otherwise it is ended. */
enum error discovery_init(void (*report)(const struct message_device *found, bool wanted),
                          struct worker *(*next)(void)) MUST_CHECK;
void discovery_fini(void);

/* Selects again among the devices of the last discovery, by the current patterns. */
void discovery_reload(void);

/* True once the first discovery has ended. */
bool discovery_done(void);
/* Returns the milliseconds until the next discovery; 0 if none is scheduled. */
uint64_t discovery_next_try(void);

/* True if a pattern (see the option `device`) matches this device of the last discovery. */
bool discovery_fits(const char *pattern, const struct message_device *found);

/* The names of enum device_type. */
extern const char *const device_types[];

/* Fills in what all device processes are told. */
void discovery_prepare(const struct worker *worker, struct start *start);
