/* Counters of live objects; objects.def says how each kind is released. */
#include "device/cl/object_counts.h"

#include <CL/cl.h>
#include <stdatomic.h>
#include <stdlib.h>

enum owner { LIFE, REQUEST };

/* Release functions have different types: wrap each of them. */
#define OBJECT(symbol, name, release, owner)                                                       \
	static void release_##symbol(void *object)                                                 \
	{                                                                                          \
		release(object);                                                                   \
	}
#include "wire/objects.def"
#undef OBJECT

static const struct {
	void (*release)(void *object);
	enum owner owner;
} rows[OBJECTS] = {
#define OBJECT(symbol, name, release, owner) {release_##symbol, owner},
#include "wire/objects.def"
#undef OBJECT
};

static _Atomic uint32_t live[OBJECTS];

void *object_add(enum object kind, void *object)
{
	if (object)
		live[kind]++;
	return object;
}

void object_release(enum object kind, void *object)
{
	if (!object)
		return;
	rows[kind].release(object);
	live[kind]--;
}

void object_counts_get(struct message_objects *count)
{
	*count = (struct message_objects){0};
	for (enum object kind = 0; kind < OBJECTS; kind++)
		count->live[kind] = live[kind];
}

bool object_counts_only_lasting(const struct message_objects *count)
{
	uint32_t passing = 0;

	for (enum object kind = 0; kind < OBJECTS; kind++)
		passing += rows[kind].owner == REQUEST ? count->live[kind] : 0;
	return !passing;
}
