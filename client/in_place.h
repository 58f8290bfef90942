/* Files that --in-place may replace by their results; the manifest knows which it has replaced
 * already. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* Returns why a result cannot replace an input with this name and suffix; or NULL. `format` is what
 * --format names, or NULL. */
const char *in_place_check_name(const char *input, const char *suffix, const char *format);

/* Returns why a result cannot replace this file; or NULL, and its status. `force`: it may be
 * write-protected. */
const char *in_place_check_file(const char *path, bool force, struct stat *info);

/* Tells whether the file is the one that was read, as it was. */
bool in_place_is_unchanged(const char *path, const struct stat *read);

/* Tells whether a result of this media type is of the format that the file's name says. */
bool in_place_fits(const char *path, const char *type);
