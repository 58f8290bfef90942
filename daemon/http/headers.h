/* Reads the head of a request, headers and query, from libmicrohttpd into a struct head. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "link/head.h"

/* Writes the identity of a connection's client: its address (the network half of IPv6); at a Unix
 * socket, the user. */
void headers_name_client(int fd, const struct sockaddr *address, char name[HEAD_CLIENT_SIZE]);

/* Reads a request's head; free it with head_fini(), also on failure, which is ERR_MEMORY. name and
 * address: the client's, unless a trusted proxy's Forwarded or X-Forwarded-For names another. url:
 * its target, which may be http://HOST/PATH. *expects: the client waits for permission to send its
 * body. */
enum error headers_read(struct MHD_Connection *connection, const char *name,
                        const struct sockaddr *address, const char *method, const char *url,
                        struct head *head, bool *expects) MUST_CHECK;
