/* The head of a request as libmicrohttpd has it, headers and query, read into a struct request. */
#ifndef HTTP_HEADERS_H
#define HTTP_HEADERS_H

#include <microhttpd.h>
#include <stdbool.h>

#include "front/api/request.h"

/* Writes who the client is, for its fair share: its address, of IPv6 the half that is a network's;
 * who comes by a Unix socket is known by the user. */
void headers_name_client(struct MHD_Connection *connection, char name[FAIR_CLIENT_SIZE]);

/* How the message is to be dealt with. */
struct framing {
	bool expects;   /* the client waits to be asked for its body (Expect) */
	bool ambiguous; /* two readers could see two messages: the connection is to be closed */
};

/* Reads what matters of the head, and who the client is; the framing is known also when the request
 * is to be refused. request->authorization points into the connection. */
enum error headers_read(struct MHD_Connection *connection, struct request *request,
                        struct framing *framing, struct problem *problem) MUST_CHECK;

#endif
