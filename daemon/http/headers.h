/* Reads the head of a request, headers and query, from libmicrohttpd into a struct request. */
#ifndef HTTP_HEADERS_H
#define HTTP_HEADERS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "front/api/request.h"

/* Writes the client's identity for its fair share: its address, for IPv6 the network half; for a
 * Unix socket, the user. source: the address that a proxy has named by the PROXY protocol; of the
 * family AF_UNSPEC: none. */
void headers_name_client(struct MHD_Connection *connection, const struct sockaddr_storage *source,
                         char name[FAIR_CLIENT_SIZE]);

/* True if the connection itself comes from a trusted proxy. */
bool headers_from_proxy(struct MHD_Connection *connection, const struct config *config);

/* The path of a target, which may be in absolute form (http://HOST/PATH). */
const char *headers_path(const char *target);

/* Reads the relevant headers and the client's identity. *expects, set even if the request is
 * refused: the client waits for permission to send its body. request->authorization points into the
 * connection's memory. source: as above; what a trusted proxy says in Forwarded or X-Forwarded-For
 * counts, too. */
enum error headers_read(struct MHD_Connection *connection, const struct sockaddr_storage *source,
                        const struct config *config, struct request *request, bool *expects,
                        struct problem *problem) MUST_CHECK;

#endif
