/* Reads the head of a request, headers and query, from libmicrohttpd into a struct head. */
#ifndef HTTP_HEADERS_H
#define HTTP_HEADERS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "link/head.h"
#include "wire/limits.h"

/* Writes the client's identity for its fair share: its address, for IPv6 the network half; for a
 * Unix socket, the user. source: the address that a proxy has named by the PROXY protocol; of the
 * family AF_UNSPEC: none. */
void headers_name_client(struct MHD_Connection *connection, const struct sockaddr_storage *source,
                         char name[HEAD_CLIENT_SIZE]);

/* True if the connection itself comes from a trusted proxy. */
bool headers_from_proxy(struct MHD_Connection *connection, const struct limits *limits);

/* Reads a request's head; free it with head_fini(), also on failure, which is ERR_MEMORY. url: its
 * target, which may be in absolute form (http://HOST/PATH). source: as above; what a trusted proxy
 * says in Forwarded or X-Forwarded-For counts, too. *expects: the client waits for permission to
 * send its body. Whom the address that it arrived at serves is the caller's to say. */
enum error headers_read(struct MHD_Connection *connection, const struct sockaddr_storage *source,
                        const struct limits *limits, const char *method, const char *url,
                        struct head *head, bool *expects) MUST_CHECK;

#endif
