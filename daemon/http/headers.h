/* Reads the head of a request, headers and query, from libmicrohttpd into a struct request. */
#ifndef HTTP_HEADERS_H
#define HTTP_HEADERS_H

#include <microhttpd.h>
#include <stdbool.h>

#include "front/api/request.h"

/* Writes the client's identity for its fair share: its address, for IPv6 the network half; for a
 * Unix socket, the user. */
void headers_name_client(struct MHD_Connection *connection, char name[FAIR_CLIENT_SIZE]);

/* The path of a target, which may be in absolute form (http://HOST/PATH). */
const char *headers_path(const char *target);

/* Reads the relevant headers and the client's identity. *expects, set even if the request is
 * refused: the client waits for permission to send its body. request->authorization points into the
 * connection's memory. */
enum error headers_read(struct MHD_Connection *connection, struct request *request, bool *expects,
                        struct problem *problem) MUST_CHECK;

#endif
