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

/* The inputs of one compilation. The key contains everything that the binary depends on: device,
 * driver, options, source. */
struct program_inputs {
	char *text;    /* OpenCL C source */
	char *options; /* compiler options */
	char *key;     /* cache key */
};

/* Fills in the inputs for a file of kernels/, with these options of the compiler, for a pixel type,
 * as the functions below do. On failure (ERR_IO or ERR_MEMORY) there is nothing to free. */
enum error program_inputs_init(struct program_inputs *inputs, const struct program_source *source,
                               const char *file, const char *options,
                               enum pixel_type type) MUST_CHECK;
void program_inputs_fini(struct program_inputs *inputs);

/* Load a program from the cache (program_load(); NULL if it is not there), compile it in this
 * process and store it in the cache (program_build()), or create it from a binary that the compiler
 * process has made (program_from_binary()). The caller owns the program. NULL on failure, logged.
 */
cl_program program_load(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type) MUST_CHECK;
cl_program program_build(const struct program_source *source, const char *file, const char *options,
                         enum pixel_type type) MUST_CHECK;
cl_program program_from_binary(const struct program_source *source, const char *file,
                               const char *options, enum pixel_type type,
                               const unsigned char *binary, size_t size) MUST_CHECK;

/* Compiles a program in this process and returns its binary, which the caller frees. ERR_IO,
 * ERR_MEMORY or ERR_DEVICE. */
enum error program_build_binary(const struct program_source *source, const char *file,
                                const char *options, enum pixel_type type, unsigned char **binary,
                                size_t *size) MUST_CHECK;

#endif
