/* The choices for a device: the best kernel for each kind of work, with all measurements, and the
 * file that stores them. */
#ifndef DEVICE_TUNING_H
#define DEVICE_TUNING_H

#include "common/wire.h"
#include "device/cl/opencl.h"

struct tuning;

enum { CHOICES_MAX = 256 };

/* Makes the list. state_dir: the directory of the file, or NULL. Loads the choices in it if they
 * were measured on this device with this driver and these kernels, and logs if they were not.
 * kernel_dir: read the kernel sources here, not from the program; or NULL. platform, index: the
 * device's, which give each device a file of its own. The device must outlive the list. NULL if
 * memory runs out or a kernel source is missing. */
struct tuning *tuning_new(const struct device *device, const char *state_dir,
                          const char *kernel_dir, unsigned platform, unsigned index);
/* NULL is allowed; the pointer becomes NULL. */
void tuning_free(struct tuning **tuning);

uint32_t tuning_count(const struct tuning *tuning);

/* The i-th choice in the order in which they were made, or the choice for a kind of work, given by
 * its text and candidates; NULL if there is none. The list owns them. */
const struct message_choice *tuning_get(const struct tuning *tuning, uint32_t i);
const struct message_choice *tuning_find(const struct tuning *tuning,
                                         const struct message_choice *kind);

/* Adds the choice for a kind of work that has none; there must be room (CHOICES_MAX). Rewrites the
 * file; a failure is logged. */
void tuning_add(struct tuning *tuning, const struct message_choice *choice);

#endif
