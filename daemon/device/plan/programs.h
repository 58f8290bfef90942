/* All programs of a device: the general kernels, one program for each file and pixel type; special
 * kernels compiled for particular parameters; and those of kernels/jpeg/, one program for each
 * file. Threads of this module make each program on request, first those that tiles wait for. */
#pragma once

#include "device/cl/program.h"
#include "device/plan/step.h"
#include "wire/wire.h"

struct programs;

enum { SPECIALS_MANY = 512 }; /* max of those who have no option for it */

/* Starts the threads; nothing is requested yet. kernel_dir: directory to read the sources from,
 * instead of the program; or NULL. cache_dir: the cache of compiled programs, or NULL; cache_size:
 * its maximum size in bytes, 0: no limit. max: special programs kept in memory, which those in use
 * may exceed; 0: only urgent ones are made. notify_fd: an eventfd that is written when
 * programs_count() changes, or -1. device and notify_fd must outlive the result. ERR_DEVICE or
 * ERR_MEMORY, logged. */
enum error programs_new(struct programs **programs, const struct device *device,
                        const char *kernel_dir, const char *cache_dir, uint64_t cache_size,
                        uint32_t max, int notify_fd) MUST_CHECK;
/* Does not wait for compiler processes. NULL is allowed; the pointer becomes NULL. */
void programs_free(struct programs **programs);

const struct device *programs_device(const struct programs *programs);
/* True unless the kernel is a special one that is only made when urgent. */
bool programs_makes(const struct programs *programs, enum kernel kernel);
/* Tells the number of programs made so far, and of pending ones. Returns a number that changes
 * whenever programs_find()'s answer for a program does. */
uint64_t programs_count(struct programs *programs, struct message_programs *count);

/* Removes programs beyond the limit, once steps have been released. */
void programs_trim(struct programs *programs);

enum program_state { PROGRAM_READY, PROGRAM_PENDING, PROGRAM_FAILED, PROGRAM_REFUSED };

/* Sets the client of the following requests: its number, or 0 for the service itself. Each client
 * may have only a few special programs pending; clients are served in turn. */
void programs_for(struct programs *programs, uint32_t client);

/* Looks up the kernel of a step that is complete except for its function. PROGRAM_READY: sets
 * step->function, which the step then holds. PROGRAM_PENDING: the program is being made, or too
 * many are pending and it must be requested again; or it is special, and only made when urgent.
 * PROGRAM_FAILED: it cannot be made.
 * PROGRAM_REFUSED: a general program that a compiler process refuses or does not survive; it is
 * tried again after a while. urgent: a tile waits for it, so it is made first and at normal
 * priority, while other programs wait as long as the device is at work (programs_at_work()). */
enum program_state programs_find(struct programs *programs, struct step *step,
                                 bool urgent) MUST_CHECK;

/* Makes every request from now on urgent: the caller only waits for programs. */
void programs_hurry(struct programs *programs);

/* Requests all general kernels, or the programs of kernels/jpeg/, which come after these;
 * programs_count() tells when they are ready. For PoCL, general kernels may stay in the cache until
 * programs_find() asks for them. */
void programs_prepare(struct programs *programs, bool jpeg);
/* Returns a file's program ("jpeg/idct.cl"), which lives as long as `programs`. NULL: not ready. */
cl_program programs_of_jpeg(struct programs *programs, const char *file);

/* Must be called whenever the device begins to run kernels, or ends; tiles that wait for programs
 * are no work. No effect if the device has its own processor. */
void programs_at_work(struct programs *programs, bool at_work);

/* Waits until nothing is pending. */
void programs_wait(struct programs *programs);
