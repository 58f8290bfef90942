/* The tuner measures which kernel, in which shape, is fastest for each kind of work on this device,
 * and stores the choice. */
#pragma once

#include "device/plan/plan.h"
#include "device/pool.h"
#include "wire/wire.h"

struct tuner;

/* Makes a tuner with the choices of the file in state_dir (NULL: none) that were measured on this
 * device with this driver and these kernels (of kernel_dir, if not NULL). pool: launches the
 * kernels, or NULL. Pool and programs must outlive the tuner. NULL if memory runs out or a kernel
 * source is missing. */
struct tuner *tuner_new(struct programs *programs, struct pool *pool, const char *state_dir,
                        const char *kernel_dir);
/* NULL is allowed; the pointer becomes NULL. */
void tuner_free(struct tuner **tuner);

/* A variant_chooser (user: the tuner). Returns the measured choice. For work that has not been
 * measured yet, uses the table and schedules a measurement. */
void tuner_choose(void *tuner, const struct work *work, enum kernel *kernel, struct shape *shape);

/* Returns true if tuner_step() has work and need not wait for programs; requests these again. */
bool tuner_ready(struct tuner *tuner);

/* Performs one step: at most one launch, and waits for it. It may complete a choice. */
void tuner_step(struct tuner *tuner);

/* The choices so far. */
const struct message_choice *tuner_choices(const struct tuner *tuner, uint32_t *count);

/* Checks filters for tuner_run(), each written as in a request's chain. ERR_BAD_PARAMETER or
 * ERR_UNKNOWN_FILTER, logged, if one is invalid. */
enum error tuner_check(const char *const *filters, size_t count) MUST_CHECK;

/* Measures every kind of work that these filters need, on images of all types, and passes each
 * choice to `report`; count 0: the common filters. Compiles at normal priority and waits until
 * everything is measured. Fails as tuner_check() does. */
enum error tuner_run(struct tuner *tuner, const char *const *filters, size_t count,
                     void (*report)(const struct message_choice *choice)) MUST_CHECK;
