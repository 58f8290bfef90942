/* Kernel sources: built into the program, or read from a directory. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/file.h"

extern const struct embedded kernels_embedded[];
extern const size_t kernels_embedded_count;

/* Returns the source of a kernel file, prefixed with the files that its directory needs; the caller
 * frees it. kernel_dir: read from this directory instead of the program; or NULL. Returns NULL,
 * logged, if a file is missing. */
char *source_load(const char *kernel_dir, const char *file) MUST_CHECK;
