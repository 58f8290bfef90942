/* Which devices the command line means. */
#ifndef BENCH_DEVICES_H
#define BENCH_DEVICES_H

#include <stddef.h>

#include "bench/options.h"
#include "common/wire.h"

/* Sets chosen[i] for each of `count` devices that the options mean, and returns their number.
 * --platform and --type limit the devices; without a type, to the GPUs, if there are any among
 * them. A number in --device counts those that are left; a name also finds devices that are no
 * GPUs. */
size_t devices_choose(const struct bench_options *options, const struct message_device *list,
                      size_t count, bool *chosen);

#endif
