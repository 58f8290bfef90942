/* One program: loaded from the cache, or compiled from source. */
#ifndef DEVICE_CL_PROGRAM_H
#define DEVICE_CL_PROGRAM_H

#include "device/cl/compile.h"
#include "device/cl/compile_process.h"

/* The program of a file of kernels/ with these options, for pixels of a type: loaded from the cache
 * (NULL if it is not there), or compiled in this process. It goes into the cache, and becomes the
 * caller's. NULL: the log says why. */
cl_program program_load(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type) MUST_CHECK;
cl_program program_build(const struct program_source *source, const char *file, const char *options,
                         enum pixel_type type) MUST_CHECK;

/* Has another process compile it. The binary goes into the cache, and becomes the caller's. */
unsigned char *program_ask_compiler(const struct program_source *source,
                                    struct compile_process *compiler, const char *file,
                                    const char *options, enum pixel_type type,
                                    size_t *size) MUST_CHECK;
/* The program of such a binary, likewise. */
cl_program program_take(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type, const unsigned char *binary, size_t size) MUST_CHECK;

#endif
