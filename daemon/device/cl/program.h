/* One program: loaded from the cache, or compiled from source. */
#ifndef DEVICE_CL_PROGRAM_H
#define DEVICE_CL_PROGRAM_H

#include "device/cl/compile.h"
#include "device/cl/compile_process.h"

/* Load a program from the cache (program_load(); NULL if it is not there), or compile it in this
 * process and store it in the cache (program_build()). file: below kernels/; options: the
 * compiler's; type: of the pixels. The caller owns the program. NULL on failure, logged. */
cl_program program_load(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type) MUST_CHECK;
cl_program program_build(const struct program_source *source, const char *file, const char *options,
                         enum pixel_type type) MUST_CHECK;

/* Has the compiler process compile a program and stores its binary in the cache. The caller frees
 * the binary; *size is in bytes. NULL on failure, logged. *deadly: see compile_process_compile().
 */
unsigned char *program_ask_compiler(const struct program_source *source,
                                    struct compile_process *compiler, const char *file,
                                    const char *options, enum pixel_type type, size_t *size,
                                    bool *deadly) MUST_CHECK;
/* Creates the program from such a binary. The caller owns it. NULL on failure, logged. */
cl_program program_take(const struct program_source *source, const char *file, const char *options,
                        enum pixel_type type, const unsigned char *binary, size_t size) MUST_CHECK;

#endif
