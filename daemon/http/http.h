/* HTTP over libmicrohttpd: the sockets, connections and their draining. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdbool.h>

#include "base/error.h"
#include "wire/network.h"

/* descriptors: how many this process may have, of which a quarter is left for requests. */
enum error http_init(uint64_t descriptors) MUST_CHECK;

/* From now on these limits hold; there are some before there is a socket. */
void http_limit(const struct limits *limits);

/* Serves the clients that connect to a socket, whose descriptor it then owns, also on failure. At
 * most HTTP_SOCKETS_MAX. */
enum error http_serve(const struct http_socket *socket) MUST_CHECK;

/* Does what is due; returns the milliseconds that the loop may wait, -1: any time. */
int http_turn(void);

/* Accepts no more connections, after (last) those that wait to be, ends each after the answer to
 * its next request, and tells the front when every request is answered. */
void http_drain(bool last);

#endif
