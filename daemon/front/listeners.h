/* What HTTP is given of the configuration: the listening sockets, and the limits of connections. */
#ifndef FRONT_LISTENERS_H
#define FRONT_LISTENERS_H

#include "common/error.h"
#include "front/config/config.h"

/* Opens every address to listen on, or takes the sockets that systemd passed, and begins to serve
 * there. Logs which address cannot be opened, and why. */
enum error listeners_init(const struct config *config) MUST_CHECK;

/* The limits may have changed. */
void listeners_reload(const struct config *config);

/* Accepts no more connections, and ends each after the answer to its next request. */
void listeners_drain(void);

#endif
