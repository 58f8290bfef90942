/* Compiling in this process: a program's inputs, and the call of the driver's compiler. */
#ifndef DEVICE_CL_COMPILE_H
#define DEVICE_CL_COMPILE_H

#include "common/image.h"
#include "device/cl/cache.h"
#include "device/cl/opencl.h"

/* Where programs come from and where they are cached. */
struct program_source {
	const struct device *device;
	const char *kernel_dir; /* read sources here, not from the program; or NULL */
	struct cache *cache;    /* may be NULL */
};

/* The inputs of one compilation. The key contains everything that the binary depends on: device,
 * driver, options, source. */
struct compile_unit {
	char *text;    /* OpenCL C source */
	char *options; /* compiler options */
	char *key;     /* cache key */
};

/* Fills in the inputs for a file of kernels/, with these options, for a pixel type. On failure
 * (ERR_IO or ERR_MEMORY) there is nothing to free. */
enum error compile_unit_init(struct compile_unit *unit, const struct program_source *source,
                             const char *file, const char *options,
                             enum pixel_type type) MUST_CHECK;
void compile_unit_fini(struct compile_unit *unit);

/* Compiles the unit. The caller owns the program. NULL on failure, logged. */
cl_program compile_unit(const struct program_source *source,
                        const struct compile_unit *unit) MUST_CHECK;

/* The complete binary of a compiled program, or NULL if the driver does not return one. The caller
 * frees it. */
unsigned char *compile_binary_of(cl_program program, size_t *size) MUST_CHECK;

/* Loads the source, compiles it and returns the binary, which the caller frees. ERR_IO, ERR_MEMORY
 * or ERR_DEVICE. */
enum error compile_to_binary(const struct program_source *source, const char *file,
                             const char *options, enum pixel_type type, unsigned char **binary,
                             size_t *size) MUST_CHECK;

#endif
