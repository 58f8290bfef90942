/* The canary: a small image that the service sends through decoder, device and encoder when no
 * client's image has passed recently, so that readiness is measured, not assumed. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum error canary_init(void) MUST_CHECK;
void canary_fini(void);

/* Stops the canary at shutdown, and cancels the image in progress: it may wait for a program to be
 * compiled, and nobody needs its result. */
void canary_stop(void);

/* Records that an image has been filtered successfully. */
void canary_success(void);

/* True if an image was filtered successfully within the last three intervals. */
bool canary_is_fresh(void);
