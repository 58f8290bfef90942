/* Kernel sources: built into the program, or read from a directory. */
#ifndef DEVICE_CL_SOURCE_H
#define DEVICE_CL_SOURCE_H

#include <stddef.h>

#include "base/error.h"

/* One file of kernels/, embedded by daemon/embed.sh. name: its path below that directory. */
struct kernel_source {
	const char *name;
	const char *text;
};

extern const struct kernel_source kernels_embedded[];
extern const size_t kernels_embedded_count;

/* The source of a kernel file, prefixed with what its directory needs; the caller frees it.
 * kernel_dir: read from this directory instead of the program; or NULL. Returns NULL, logged, if a
 * file is missing. */
char *source_load(const char *kernel_dir, const char *file) MUST_CHECK;

#endif
