/* All programs of a device: the general kernels, built before anything else, and those compiled for
 * particular parameters, which a thread of its own builds while the general ones do the work. */
#ifndef DEVICE_PROGRAMS_H
#define DEVICE_PROGRAMS_H

#include "common/wire.h"
#include "device/program.h"
#include "device/step.h"

struct programs;

/* Builds the general kernels for all types, and starts the thread. kernel_dir: a folder to read the
 * sources from instead of those in the program, or NULL; cache_dir: where compiled programs are
 * kept, or NULL, at most cache_size bytes of them (0: no bound); notify_fd: an eventfd that is
 * written when a program has been built, or -1. The device must outlive them. On failure ERR_DEVICE
 * (or ERR_IO, ERR_MEMORY), the reason in the log.
 */
enum error programs_new(struct programs **programs, const struct device *device,
                        const char *kernel_dir, const char *cache_dir, uint64_t cache_size,
                        int notify_fd) MUST_CHECK;
/* Waits for what the thread is at. NULL is allowed; the pointer becomes NULL. */
void programs_free(struct programs **programs);

const struct device *programs_device(const struct programs *programs);
/* How many programs have been built until now, and how many are being built. */
void programs_count(struct programs *programs, struct message_programs *count);

/* How many special programs are kept in memory, beyond those that are in use (512). */
void programs_bound(struct programs *programs, uint32_t most);

enum program_state { PROGRAM_READY, PROGRAM_PENDING, PROGRAM_FAILED };

/* Gives a step, complete but for its function, the function for it; the step holds it. A general
 * kernel is always ready. Another is pending the first time, and being built; or, if too many are
 * already, it waits until it is asked for again. urgent: before all that are not. */
/* Whose requests follow: a client's number, or 0 for our own. The list of what is to be compiled is
 * bounded, and each has only a part of it; the builder serves them in turn. */
void programs_for(struct programs *programs, uint32_t client);

enum program_state programs_find(struct programs *programs, struct step *step,
                                 bool urgent) MUST_CHECK;

/* Waits until nothing is pending. */
void programs_wait(struct programs *programs);

#endif
