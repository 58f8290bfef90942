/* One program: loaded from the cache, or compiled from source. */
#ifndef DEVICE_CL_PROGRAM_H
#define DEVICE_CL_PROGRAM_H

#include "device/cl/cache.h"
#include "device/cl/opencl.h"
#include "image/image.h"

/* The place that programs come from, and that of their cache. */
struct program_source {
	const struct device *device;
	const char *kernel_dir; /* read sources here, not from the program; or NULL */
	struct cache *cache;    /* may be NULL */
};

/* Creates a program of a file of kernels/, with these options of the compiler, for a pixel type:
 * from a binary that the compiler process has made, which then goes into the cache, or from the
 * cache's (NULL). The caller owns the program. NULL if there is none, or on failure, logged. */
cl_program program_load(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type, const unsigned char *binary, size_t size) MUST_CHECK;

/* Compiles a program in this process and stores it in the cache. NULL on failure, logged. */
cl_program program_build(const struct program_source *source, const char *file, const char *options,
                         enum pixel_type type) MUST_CHECK;

/* The complete binary of a compiled program, which the caller frees; NULL if the driver has none.
 */
unsigned char *program_binary(cl_program program, size_t *size) MUST_CHECK;

#endif
