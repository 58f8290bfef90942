/* The canary: a small image that passes decoder, device and encoder when nothing else does, so that
 * readiness is always a fact and not a guess. */
#ifndef FRONT_WORKERS_CANARY_H
#define FRONT_WORKERS_CANARY_H

#include <stdbool.h>

#include "common/error.h"
#include "front/config/config.h"

enum error canary_init(const struct config *config) MUST_CHECK;
void canary_fini(void);

/* No more of them: the service is to end, and nobody waits for the one under way, which may itself
 * wait for a program to be compiled. */
void canary_stop(void);

/* An image has passed the whole way. */
void canary_success(void);

/* True if one has within the last three intervals. */
bool canary_is_fresh(void);

#endif
