/* The sandbox of device workers, which run drivers on untrusted pixels. */
#ifndef DEVICE_CONFINE_H
#define DEVICE_CONFINE_H

#include "common/error.h"

/* Confines this process and its children, irrevocably. It loses: new privileges; core dumps;
 * writing files outside these two directories (NULL: none), the drivers' own and temporary ones;
 * signals to other processes, setting their limits and reading their memory; sockets other than
 * Unix sockets; and administrative system calls. Reading files and running programs stay allowed,
 * because drivers do both. To be called before threads start. ERR_INTERNAL, with errno set, if the
 * kernel refuses. */
enum error confine(const char *cache_dir, const char *state_dir) MUST_CHECK;

#endif
