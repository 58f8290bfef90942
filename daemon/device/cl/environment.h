/* Environment variables for drivers, and directories for their own files, each of one process: PoCL
 * ends the process when it finds a damaged file, and two processes cannot share its files. */
#ifndef DEVICE_CL_ENVIRONMENT_H
#define DEVICE_CL_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Gives drivers directories of their own below cache_dir (NULL: their default), or PoCL a temporary
 * one if it could not use that, and sets PoCL's options. Variables that are set stay, unless PoCL
 * could not use its directory. To be called before the first OpenCL call by every program that runs
 * or measures kernels. */
void environment_set(const char *cache_dir);

/* True, logged, if PoCL can no longer use the directory that it was given: it has no other until
 * the process is started again. */
bool environment_is_lost(void) MUST_CHECK;

/* Creates an empty directory below `directory`, whose last part is made too, and locks it until the
 * process ends. Its name is the prefix and six characters. Before that, removes those of this user
 * and prefix that killed processes have left. Writes the path; false, with errno, on failure or if
 * the directory is not usable. */
bool work_directory_make(const char *directory, const char *prefix, char *path,
                         size_t size) MUST_CHECK;

/* Removes a directory with its contents, as far as possible. */
void work_directory_remove(const char *path);

#endif
