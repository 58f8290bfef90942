/* Reads the head of a request, headers and query, from libmicrohttpd into a struct head. */
#ifndef HTTP_HEADERS_H
#define HTTP_HEADERS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "link/head.h"

/* Writes the client's identity: its address (the network half of IPv6); at a Unix socket, the user.
 * source: the address that a proxy has named by the PROXY protocol, or AF_UNSPEC. */
void headers_name_client(struct MHD_Connection *connection, const struct sockaddr_storage *source,
                         char name[HEAD_CLIENT_SIZE]);

/* True if the connection itself comes from a trusted proxy. */
bool headers_from_proxy(struct MHD_Connection *connection);

/* Reads a request's head; free it with head_fini(), also on failure, which is ERR_MEMORY. name: the
 * client's, unless a trusted proxy's Forwarded or X-Forwarded-For names another. url: its target,
 * which may be http://HOST/PATH. *expects: the client waits for permission to send its body. */
enum error headers_read(struct MHD_Connection *connection, const char *name,
                        const struct sockaddr_storage *source, const char *method, const char *url,
                        struct head *head, bool *expects) MUST_CHECK;

#endif
