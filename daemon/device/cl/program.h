/* One program: loaded from the cache, or compiled from source. */
#pragma once

#include "device/cl/cache.h"
#include "device/cl/opencl.h"
#include "image/image.h"

/* The directory of the sources, and that of the programs' cache. */
struct program_source {
	const struct device *device;
	const char *kernel_dir; /* read sources here, not from the program; or NULL */
	struct cache *cache;    /* may be NULL */
};

/* The binary of a program, which its owner frees. */
struct binary {
	unsigned char *data; /* NULL: there is none */
	size_t size;
	/* compiling ended its process, or did not end: not to be compiled by this one */
	bool deadly;
};

/* The ways to make a program: from the cache, from a binary that the compiler process has made, or
 * by compiling in this process. */
enum way { WAY_CACHE, WAY_BINARY, WAY_COMPILE };

/* Makes a program from a file of kernels/, with these compiler options, for a pixel type; a program
 * that is not from the cache is stored there. binary: for WAY_BINARY. The caller owns the program.
 * Returns NULL on failure, which is logged unless the program is merely not in the cache. */
cl_program program_make(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type, enum way way, const struct binary *binary) MUST_CHECK;

/* True if the program is in the cache, undamaged. */
bool program_cached(const struct program_source *source, const char *file, const char *options,
                    enum pixel_type type) MUST_CHECK;

/* Returns the complete binary of a compiled program, or none if the driver has none. */
struct binary program_binary(cl_program program) MUST_CHECK;
