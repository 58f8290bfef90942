/* The tuner: measures which kernel, in which shape, is fastest for a kind of work on this device,
 * and records it. */
#ifndef DEVICE_TUNER_H
#define DEVICE_TUNER_H

#include "common/wire.h"
#include "device/plan/plan.h"

struct tuner;

/* Makes a tuner, which uses what tuning_new() finds; folders and indices are those that it takes.
 * The programs must outlive it. NULL if there is no memory or a kernel's source is not there. */
struct tuner *tuner_new(struct programs *programs, const char *state_dir, const char *kernel_dir,
                        unsigned platform, unsigned index);
/* NULL is allowed; the pointer becomes NULL. */
void tuner_free(struct tuner **tuner);

/* Chooses for a plan (a variant_chooser; user: the tuner): what was measured, or the best by table
 * of work that has not been measured yet, of which it takes note. */
void tuner_choose(void *tuner, const struct work *work, enum kernel *kernel, struct shape *shape);

/* True if tuner_step() has work; false while it waits for programs. */
bool tuner_ready(struct tuner *tuner);

/* Does one step: launches at most one kernel and waits for it. If that settles a choice, fills in
 * the message for the front and returns true. */
bool tuner_step(struct tuner *tuner, struct message_choice *choice);

/* The i-th of the choices made; false after the last. */
bool tuner_get(struct tuner *tuner, uint32_t i, struct message_choice *choice);

/* Takes note of every kind of work that these filters (count 0: the usual ones; each as in a
 * request's chain) come to with images of all types, then measures until all is settled. Each
 * choice is handed to `report`. ERR_BAD_PARAMETER or ERR_UNKNOWN_FILTER, logged, if a filter is
 * none. */
enum error tuner_run(struct tuner *tuner, const char *const *filters, size_t count,
                     void (*report)(const struct message_choice *choice)) MUST_CHECK;

#endif
