/* The scheduler: keeps one queue of ready tiles, and decides which device gets the next one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Starts codec workers and devices, and connects them. */
enum error scheduler_init(void) MUST_CHECK;
void scheduler_fini(void);

/* Returns false if none of these devices (a bit for each; 0: any) has been up, or starting for the
 * first time, for so long that tiles waiting for one fail: a tenth of `job-timeout`. */
bool scheduler_has_hope(uint64_t which);

/* Return the number of tiles that wait for a device; and the number of tiles since the start that
 * came back from a device, filtered or failed, or were lost with it. */
unsigned scheduler_waiting(void);
uint64_t scheduler_returned(void);
