/* Counts the live objects of this process by kind, so that a leak shows as a growing number. The
 * code that creates an object calls object_add(), and object_release() to release it.
 * Thread-safe. */
#ifndef DEVICE_CL_OBJECT_COUNTS_H
#define DEVICE_CL_OBJECT_COUNTS_H

#include <stdbool.h>

#include "wire/objects.h"
#include "wire/wire.h"

/* Counts a created object or a retained reference and returns it; ignores NULL. */
void *object_add(enum object kind, void *object);

/* Releases an object and counts down; NULL is allowed. */
void object_release(enum object kind, void *object);

void object_counts_get(struct message_objects *count);

/* True if all live objects belong to the process, none to a request. */
bool object_counts_only_lasting(const struct message_objects *count);

#endif
