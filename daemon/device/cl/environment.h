/* Environment variables for drivers. */
#ifndef DEVICE_CL_ENVIRONMENT_H
#define DEVICE_CL_ENVIRONMENT_H

#include <stdbool.h>

#include "common/error.h"

/* Gives drivers directories of their own below cache_dir (NULL: their default), or PoCL one in a
 * temporary directory if it could not use that; and sets PoCL's compiler options for the service.
 * Variables that are already set stay, unless PoCL could not use its directory. To be called before
 * the first OpenCL call, by every program that runs or measures kernels. */
void environment_set(const char *cache_dir);

/* True, logged, if PoCL can no longer use the directory that it was given: it has no other until
 * the process is started again. */
bool environment_is_lost(void) MUST_CHECK;

#endif
