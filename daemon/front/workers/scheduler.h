/* The scheduler: one queue of tiles that are ready; it decides which device gets the next one. */
#ifndef FRONT_WORKERS_SCHEDULER_H
#define FRONT_WORKERS_SCHEDULER_H

#include <stdint.h>

#include "common/error.h"
#include "front/config/config.h"

/* Starts codec workers and devices, and joins them. */
enum error scheduler_init(const struct config *config) MUST_CHECK;
void scheduler_fini(void);

/* The number of tiles that wait for a device; the number that have come back from one (filtered or
 * not), or were lost with it, since the start. */
unsigned scheduler_waiting(void);
uint64_t scheduler_returned(void);

#endif
