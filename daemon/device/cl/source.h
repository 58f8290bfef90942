/* The kernels' sources: built into the program, or read from a folder. */
#ifndef DEVICE_CL_SOURCE_H
#define DEVICE_CL_SOURCE_H

#include <stddef.h>

#include "common/error.h"

/* One file of kernels/, by its path below that folder, as kernels/embed.sh puts it into the
 * program. */
struct kernel_source {
	const char *name;
	const char *text;
};

extern const struct kernel_source kernels_embedded[];
extern const size_t kernels_embedded_count;

/* The text of a file with what stands before every kernel (border.h, common.cl), which the caller
 * frees. kernel_dir: a folder to read from instead of the program, or NULL. NULL if a file is not
 * there; the reason is logged. */
char *source_load(const char *kernel_dir, const char *file) MUST_CHECK;

#endif
