/* All programs of a device: those of the general kernels, one for each of their files and types of
 * pixels, and those compiled for particular parameters. Each is made when it is asked for, by
 * threads of their own: first what tiles wait for. */
#ifndef DEVICE_PLAN_PROGRAMS_H
#define DEVICE_PLAN_PROGRAMS_H

#include "common/wire.h"
#include "device/cl/program.h"
#include "device/plan/step.h"

struct programs;

/* Starts the threads; nothing is asked for yet. kernel_dir: a folder to read the sources from
 * instead of those in the program, or NULL; cache_dir: where compiled programs are kept, or NULL,
 * at most cache_size bytes of them (0: no bound); notify_fd: an eventfd that is written when the
 * count of programs changes, or -1. The device must outlive them. On failure ERR_DEVICE or
 * ERR_MEMORY, the reason in the log. */
enum error programs_new(struct programs **programs, const struct device *device,
                        const char *kernel_dir, const char *cache_dir, uint64_t cache_size,
                        int notify_fd) MUST_CHECK;
/* What is compiled by another process is not waited for. NULL is allowed; the pointer becomes NULL.
 */
void programs_free(struct programs **programs);

const struct device *programs_device(const struct programs *programs);
/* How many programs have been built until now, and how many are asked for. */
void programs_count(struct programs *programs, struct message_programs *count);

/* How many special programs are kept in memory, beyond those that are in use (512). */
void programs_bound(struct programs *programs, uint32_t most);

enum program_state { PROGRAM_READY, PROGRAM_PENDING, PROGRAM_FAILED };

/* Whose requests follow: a client's number, or 0 for our own. The list of special programs that are
 * to be compiled is bounded, and each has only a part of it; they are served in turn. */
void programs_for(struct programs *programs, uint32_t client);

/* Gives a step, complete but for its function, the function for it; the step holds it. A kernel is
 * pending the first time, and being built; or, if too many special ones are already, it waits until
 * it is asked for again. urgent: a tile waits for it, so it is made before all that are not, at
 * normal priority. Others stand back while there is work (programs_at_work()). */
enum program_state programs_find(struct programs *programs, struct step *step,
                                 bool urgent) MUST_CHECK;

/* Asks for all general kernels. */
void programs_prepare(struct programs *programs);

/* Whether the device has something to do: told when that changes. Of a device with a processor of
 * its own it does not matter. */
void programs_at_work(struct programs *programs, bool at_work);

/* Waits until nothing is pending. */
void programs_wait(struct programs *programs);

#endif
