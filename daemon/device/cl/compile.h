/* Compiling: what a program is compiled from, and the compiler of this process. */
#ifndef DEVICE_CL_COMPILE_H
#define DEVICE_CL_COMPILE_H

#include "common/image.h"
#include "device/cl/cache.h"
#include "device/cl/opencl.h"

/* What programs are made of and where they are kept. */
struct program_source {
	const struct device *device;
	const char *kernel_dir; /* a folder to read sources from instead of the program, or NULL */
	struct cache *cache;    /* may be NULL */
};

/* What one program is compiled from. The key is everything that its binary depends on: device,
 * driver, options, source. */
struct compile_unit {
	char *text;    /* the source */
	char *options; /* for the compiler */
	char *key;     /* for the cache */
};

/* That of a file of kernels/ with these options, for pixels of a type. On failure, ERR_IO or
 * ERR_MEMORY, there is nothing to free. */
enum error compile_unit_init(struct compile_unit *unit, const struct program_source *source,
                             const char *file, const char *options,
                             enum pixel_type type) MUST_CHECK;
void compile_unit_fini(struct compile_unit *unit);

/* Compiles it. The program is the caller's. NULL: the log says why. */
cl_program compile_unit(const struct program_source *source,
                        const struct compile_unit *unit) MUST_CHECK;

/* What a compiled program consists of, complete; NULL if it does not say. The caller frees it. */
unsigned char *compile_binary_of(cl_program program, size_t *size) MUST_CHECK;

/* From the file to the binary, which the caller frees. */
enum error compile_to_binary(const struct program_source *source, const char *file,
                             const char *options, enum pixel_type type, unsigned char **binary,
                             size_t *size) MUST_CHECK;

#endif
