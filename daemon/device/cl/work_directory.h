/* Directories for a driver's own files, each of one process: PoCL ends the process when it finds a
 * damaged file, and two processes cannot share its files. */
#ifndef DEVICE_CL_WORK_DIRECTORY_H
#define DEVICE_CL_WORK_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/* Creates an empty directory below `directory`, whose last part is made too if it is missing, and
 * locks it until the process ends. Its name is the prefix and six characters. Before that, removes
 * this user's directories of the same prefix that no process has locked, because a killed process
 * leaves its own behind. Writes the path; false, with errno, on failure or if the new directory is
 * not usable. */
bool work_directory_make(const char *directory, const char *prefix, char *path,
                         size_t size) MUST_CHECK;

/* True if a directory has room for a driver's files, and may hold code; false with errno. */
bool work_directory_usable(const char *path) MUST_CHECK;

/* Removes a directory with its contents, as far as possible. */
void work_directory_remove(const char *path);

#endif
