/* Compiling in a process of its own: what a compiler takes, breaks or holds up is then not the
 * worker's. PoCL's lets no kernel be launched while it compiles one, and stays in memory. The
 * process is started when it is first asked, and asked again and again: most of a short compilation
 * is the start of the compiler.
 *
 * A patient one has the lowest priority (SCHED_IDLE), which no process can leave again, and stands
 * back while there is work. */
#ifndef DEVICE_CL_COMPILE_PROCESS_H
#define DEVICE_CL_COMPILE_PROCESS_H

#include <stddef.h>

#include "common/image.h"
#include "device/cl/compile.h"

struct compile_process;

/* Starts nothing yet. The source must outlive it. stop_fd: an eventfd that is readable once nothing
 * is to be waited for any more. NULL: no memory or descriptors. */
struct compile_process *compile_process_new(const struct program_source *source, bool patient,
                                            int stop_fd) MUST_CHECK;
/* A process that is still at work ends with the thread that has asked it. NULL is allowed; the
 * pointer becomes NULL. */
void compile_process_free(struct compile_process **process);

/* Until this moment (CLOCK_MONOTONIC, nanoseconds) a patient process stands back: it has a tenth of
 * the time. Any thread may say so. */
void compile_process_stand_back(struct compile_process *process, uint64_t until_ns);

/* Has the process compile, and waits for it, some minutes at most. Returns the binary, which the
 * caller frees, or NULL; the log says why. */
unsigned char *compile_process_compile(struct compile_process *process, const char *file,
                                       const char *options, enum pixel_type type,
                                       size_t *size) MUST_CHECK;

/* Nothing more is to be compiled for now: lets the process end. */
void compile_process_rest(struct compile_process *process);

/* The other side: compiles on the device what it is asked to, until nobody asks any more. The exit
 * status. */
int compile_process_serve(bool patient, unsigned platform, unsigned index, const char *kernel_dir);

#endif
