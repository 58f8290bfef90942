/* One program: compiled from source, or loaded from the cache. */
#ifndef DEVICE_PROGRAM_H
#define DEVICE_PROGRAM_H

#include "common/image.h"
#include "device/cache.h"
#include "device/opencl.h"

/* What programs are made of and where they are kept. */
struct program_source {
	const struct device *device;
	const char *kernel_dir; /* a folder to read sources from instead of the program, or NULL */
	struct cache *cache;    /* may be NULL */
};

/* Builds the program of a file of kernels/ (NULL: the general kernels) with these options, for
 * pixels of a type; what is compiled goes into the cache. *cached: it came from there. The log says
 * why if that fails: ERR_DEVICE, ERR_IO or ERR_MEMORY. The program becomes the caller's. */
enum error program_build(const struct program_source *source, const char *file, const char *options,
                         enum pixel_type type, cl_program *program, bool *cached) MUST_CHECK;

/* Compiles the same, without the cache, to a binary that the caller frees. */
enum error program_compile(const struct program_source *source, const char *file,
                           const char *options, enum pixel_type type, unsigned char **binary,
                           size_t *size) MUST_CHECK;

#endif
