/* Counts the live objects of this process by kind. Whoever creates an object registers it here, and
 * releases it here; so a leak shows as a growing number. Thread-safe. */
#ifndef DEVICE_CL_OBJECT_COUNTS_H
#define DEVICE_CL_OBJECT_COUNTS_H

#include <stdbool.h>

#include "common/objects.h"
#include "common/wire.h"

/* Counts an object that was created, or a reference that was taken; ignores NULL. Returns it. */
void *object_add(enum object kind, void *object);

/* Releases such an object; NULL is allowed. */
void object_release(enum object kind, void *object);

void object_counts_get(struct message_objects *count);

/* True if none of them belongs to a request. */
bool object_counts_only_lasting(const struct message_objects *count);

#endif
