/* HTTP over libmicrohttpd, and nothing else: the only file that knows it. */
#ifndef FRONT_HTTP_H
#define FRONT_HTTP_H

#include "front/config.h"

/* Opens every address to listen on, or takes the sockets that systemd has passed. Says on standard
 * error which address cannot be opened and why. */
enum error http_init(const struct config *config) MUST_CHECK;

/* Does what is due; returns how many milliseconds the loop may wait, -1 for any time. */
int http_turn(void);

/* Takes no more connections. */
void http_drain(void);

/* Requests that have begun and are not yet completely answered. */
unsigned http_active(void);

void http_fini(void);

#endif
