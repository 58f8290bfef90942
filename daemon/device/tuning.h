/* The choices for a device: for each kind of work the best kernel and its measurements, and the
 * file that keeps them between processes. */
#ifndef DEVICE_TUNING_H
#define DEVICE_TUNING_H

#include "common/wire.h"
#include "device/cl/opencl.h"

struct tuning;

enum { CHOICES_MAX = 256 };

/* Makes the list. state_dir: where choices are remembered, or NULL; what is there is taken over if
 * it was measured on this device with this driver and these kernels, else a warning or a line of
 * the log says so. kernel_dir: where the kernels are read from instead of the program, or NULL.
 * platform and index: the device's, to tell the files of several apart. The device must outlive the
 * list. NULL if there is no memory or a kernel's source is not there. */
struct tuning *tuning_new(const struct device *device, const char *state_dir,
                          const char *kernel_dir, unsigned platform, unsigned index);
/* NULL is allowed; the pointer becomes NULL. */
void tuning_free(struct tuning **tuning);

uint32_t tuning_count(const struct tuning *tuning);

/* The i-th (in the order in which they were made), or that of a kind of work; NULL if there is
 * none. They stay the list's. */
const struct message_choice *tuning_get(const struct tuning *tuning, uint32_t i);
const struct message_choice *tuning_find(const struct tuning *tuning, const char *work);

/* Adds the choice for a kind of work that has none; there must be room. Rewrites the file; a
 * failure to do so is logged. */
void tuning_add(struct tuning *tuning, const struct message_choice *choice);

#endif
