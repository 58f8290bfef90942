/* Environment variables for drivers, and directories for their own files, one for each process:
 * PoCL ends the process when it finds a damaged file, and two processes cannot share its files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Gives drivers directories of their own below cache_dir (NULL: their default), or PoCL a temporary
 * one if it could not use that, and sets PoCL's options. Existing variables stay, unless PoCL could
 * not use its directory. Every program that runs or measures kernels must call this before the
 * first OpenCL call. */
void environment_set(const char *cache_dir);

/* Returns the environment as it was then, for processes that use OpenCL, too: OpenCL loaders cut
 * their lists of drivers (OCL_ICD_FILENAMES) into words where they stand. */
char **environment_unspoiled(void) MUST_CHECK;

/* Returns true, and logs it, if PoCL can no longer use its directory; it gets no other until the
 * process is started again. */
bool environment_is_lost(void) MUST_CHECK;

/* Creates an empty directory below `directory`, whose last part is created too, and locks it until
 * the process ends. Its name is the prefix and six characters. First removes directories of this
 * user and prefix that killed processes have left. Writes the path; returns false, with errno, on
 * failure or if the directory is not usable. */
bool work_directory_make(const char *directory, const char *prefix, char *path,
                         size_t size) MUST_CHECK;

/* Removes a directory and, as far as possible, its contents. */
void work_directory_remove(const char *path);
