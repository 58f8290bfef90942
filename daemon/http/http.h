/* HTTP over libmicrohttpd: the sockets, connections and their draining. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdbool.h>

#include "common/error.h"
#include "front/config/config.h"

/* Opens every address to listen on, or takes the sockets that systemd passed. Prints on standard
 * error which address cannot be opened, and why. */
enum error http_init(const struct config *config) MUST_CHECK;

/* Does what is due; returns the milliseconds that the loop may wait, -1: any time. */
int http_turn(void);

/* Accepts no more connections, and ends each after the answer to its next request. */
void http_drain(void);

/* In a drain: true when every request on the accepted connections is answered. */
bool http_drained(void);

/* The number of requests that have begun and are not completely answered. */
unsigned http_active(void);

void http_fini(void);

#endif
