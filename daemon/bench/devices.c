/* Which devices the command line means. */
#include "bench/devices.h"

#include <stdlib.h>
#include <string.h>

/* True if --platform and --type allow the device. */
static bool is_allowed(const struct bench_options *o, const struct message_device *m)
{
	return (o->platform < 0 || m->platform == (unsigned)o->platform) &&
	       (!o->type_given || !o->device_type || m->type == o->device_type);
}

size_t devices_choose(const struct bench_options *o, const struct message_device *list,
                      size_t count, bool *chosen)
{
	char *end = NULL;
	unsigned long wanted = o->device ? strtoul(o->device, &end, 10) : 0;
	const bool named = o->device && (*end || end == o->device);
	bool only_gpus = false;
	size_t number = 0, found = 0;

	for (size_t i = 0; i < count && !o->type_given && !named; i++)
		only_gpus |= is_allowed(o, &list[i]) && list[i].type == DEVICE_GPU;
	for (size_t i = 0; i < count; i++) {
		chosen[i] = is_allowed(o, &list[i]) && (!only_gpus || list[i].type == DEVICE_GPU);
		if (named)
			chosen[i] = chosen[i] && strcasestr(list[i].name, o->device);
		else if (chosen[i] && o->device)
			chosen[i] = number++ == wanted;
		found += chosen[i];
	}
	return found;
}
