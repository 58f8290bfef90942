/* HTTP over libmicrohttpd, and nothing else: the only file that knows it. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdbool.h>

#include "common/error.h"
#include "front/config/config.h"

/* Opens every address to listen on, or takes the sockets that systemd has passed. Says on standard
 * error which address cannot be opened and why. */
enum error http_init(const struct config *config) MUST_CHECK;

/* Does what is due; returns how many milliseconds the loop may wait, -1 for any time. */
int http_turn(void);

/* Takes no more connections, and ends each after the answer to its next request. */
void http_drain(void);

/* In a drain: true when every request that came on a connection it had taken is answered. */
bool http_drained(void);

/* Requests that have begun and are not yet completely answered. */
unsigned http_active(void);

void http_fini(void);

#endif
