/* The scheduler: one queue of tiles that are ready, and which device gets the next. */
#ifndef FRONT_SCHEDULER_H
#define FRONT_SCHEDULER_H

#include "front/config.h"

/* Starts codec workers and devices, and joins them. */
enum error scheduler_init(const struct config *config) MUST_CHECK;
void scheduler_fini(void);

#endif
