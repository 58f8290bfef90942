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

/* Checks a socket that systemd has passed, and logs where it listens. An error, with a line in the
 * log, if clients cannot connect to it: it is no stream socket, or does not listen. */
enum error listener_check(int fd) MUST_CHECK;

#endif
