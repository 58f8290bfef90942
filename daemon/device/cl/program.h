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

/* The binary of a program, which its owner frees. */
struct binary {
	unsigned char *data; /* NULL: there is none */
	size_t size;
	bool deadly; /* compiling ended its process, or would not end: not for this one */
};

/* The ways to make a program: from the cache, from a binary that the compiler process has made, or
 * by compiling in this process. */
enum way { WAY_CACHE, WAY_BINARY, WAY_COMPILE };

/* Makes a program of a file of kernels/, with these options of the compiler, for a pixel type; what
 * is not from the cache goes there. binary: for WAY_BINARY. The caller owns the program. NULL on
 * failure, which is logged unless the program is just not in the cache. */
cl_program program_make(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type, enum way way, const struct binary *binary) MUST_CHECK;

/* The complete binary of a compiled program, or none if the driver has none. */
struct binary program_binary(cl_program program) MUST_CHECK;

#endif
