/* The scheduler: keeps one queue of tiles that are ready, and decides which device gets the next
 * one. */
#ifndef FRONT_WORKERS_SCHEDULER_H
#define FRONT_WORKERS_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "front/config/config.h"

/* Starts codec workers and devices, and connects them. */
enum error scheduler_init(const struct config *config) MUST_CHECK;
void scheduler_fini(void);

/* False where there is no device, or none has been up or starting for some seconds, after which
 * tiles fail. */
bool scheduler_has_hope(void);

/* The number of tiles that wait for a device; the number of tiles since the start that came back
 * from a device, filtered or failed, or were lost with it. */
unsigned scheduler_waiting(void);
uint64_t scheduler_returned(void);

#endif
