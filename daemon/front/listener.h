/* Sockets to listen on, from the addresses of the configuration. */
#ifndef FRONT_LISTENER_H
#define FRONT_LISTENER_H

#include <stdbool.h>

#include "common/error.h"

/* True if an address has one of the forms that listener_open() takes. */
bool listener_valid(const char *address);

/* Opens "ADDRESS:PORT", "[ADDRESS]:PORT" or "unix:PATH" (a socket that nobody serves any more is
 * replaced). The descriptor is the caller's. Writes to the log why it cannot. */
enum error listener_open(const char *address, int *fd) MUST_CHECK;

#endif
