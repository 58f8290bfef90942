/* Compiling in a separate process: a compiler that crashes, hangs or leaks memory does not affect
 * the worker, and PoCL launches no kernel while it compiles one in the same process. The process
 * starts with the first request and serves further ones. A patient one has the lowest priority
 * (SCHED_IDLE), which it cannot leave, and pauses while the device has work. */
#pragma once

#include <stdbool.h>

#include "device/cl/program.h"

struct compile_process;

/* Starts no process yet. The source must outlive the result. stop_fd: an eventfd that becomes
 * readable when the worker stops; it ends all waits. NULL if memory or descriptors run out. */
struct compile_process *compile_process_new(const struct program_source *source, bool patient,
                                            int stop_fd) MUST_CHECK;
/* A process that is still compiling ends with the thread that started it. NULL is allowed; the
 * pointer becomes NULL. */
void compile_process_free(struct compile_process **process);

/* Makes a patient process pause until this moment (CLOCK_MONOTONIC, nanoseconds): it then gets
 * about a tenth of the time. Thread-safe. */
void compile_process_stand_back(struct compile_process *process, uint64_t until_ns);

/* Lets the process compile a program, which takes some minutes at most. Returns the binary, or none
 * (logged). */
struct binary compile_process_compile(struct compile_process *process, const char *file,
                                      const char *options, enum pixel_type type) MUST_CHECK;

/* Lets the process end, because there are no more requests for now. */
void compile_process_rest(struct compile_process *process);

/* The main function of the compiler process: serves requests for this device until the worker
 * closes the socket. Does not return. */
int compile_process_serve(bool patient, unsigned platform, unsigned index, const char *kernel_dir);
