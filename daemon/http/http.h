/* HTTP over libmicrohttpd: the sockets, connections and their draining. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdbool.h>

#include "base/error.h"
#include "wire/network.h"

/* serves() is asked before a client is accepted. While it is false, clients wait in the sockets:
 * the end of this process would cost them nothing there. descriptors: how many this process may
 * have, of which a quarter is left for requests. */
enum error http_init(const struct limits *limits, bool (*serves)(void),
                     uint64_t descriptors) MUST_CHECK;

/* From now on these limits hold. */
void http_limit(const struct limits *limits);

/* Serves the clients that connect to a socket, whose descriptor it then owns, also on failure. At
 * most HTTP_SOCKETS_MAX. */
enum error http_serve(const struct http_socket *socket) MUST_CHECK;

/* Does what is due; returns the milliseconds that the loop may wait, -1: any time. full: nothing
 * more is taken from clients in this turn. */
int http_turn(bool full);

/* Accepts no more connections, after (last) those that wait to be, and ends each after the answer
 * to its next request. */
void http_drain(bool last);

/* In a drain: true when every request on the accepted connections is answered. */
bool http_drained(void);

#endif
