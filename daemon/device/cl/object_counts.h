/* Objects that live in this process, counted by kind. Whoever makes one says so, and releases it
 * here; so a leak shows as a number that grows. May be called from any thread. */
#ifndef DEVICE_CL_OBJECT_COUNTS_H
#define DEVICE_CL_OBJECT_COUNTS_H

#include <stdbool.h>

#include "common/objects.h"
#include "common/wire.h"

/* Counts an object that was made, or a reference that was taken; NULL does not count. Returns it.
 */
void *object_add(enum object kind, void *object);

/* Releases such an object; NULL is allowed. */
void object_release(enum object kind, void *object);

void object_counts_get(struct message_objects *count);

/* True if none of them belongs to a request. */
bool object_counts_only_lasting(const struct message_objects *count);

#endif
