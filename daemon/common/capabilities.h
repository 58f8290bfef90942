/* Capabilities(7), which a service that root starts has. */
#ifndef COMMON_CAPABILITIES_H
#define COMMON_CAPABILITIES_H

#include "common/error.h"

/* Drops all of this thread's, and so those of threads that it starts. ERR_INTERNAL with errno
 * set. */
enum error capabilities_drop(void) MUST_CHECK;

#endif
