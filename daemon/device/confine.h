/* What a device worker may do, once it runs drivers on pixels of strangers. */
#ifndef DEVICE_CONFINE_H
#define DEVICE_CONFINE_H

#include "common/error.h"

/* Takes from this process and those that it starts, for good: new privileges, core dumps, files
 * that can be changed outside these two directories (NULL: none), the drivers' own and temporary
 * ones; signals to other processes, limits on them, and reading them; sockets but Unix ones; and
 * what only administration needs. Reading files and running programs stay, as drivers do both. Must
 * be called before a thread is started. Returns ERR_INTERNAL, with errno set, if the kernel
 * refuses. */
enum error confine(const char *cache_dir, const char *state_dir) MUST_CHECK;

#endif
