/* The HTTP workers: the processes that accept connections, and read requests and write answers.
 * They get the listening sockets, the certificate and the limits; one that ends is replaced, and
 * clients that connect meanwhile wait at the sockets, which are the front's. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "wire/wire.h"

/* Adds a listening socket, which the module owns from then on; at most HTTP_SOCKETS_MAX of them. */
void http_workers_serve(struct http_socket socket);

/* Starts as many workers as are configured. */
enum error http_workers_init(void) MUST_CHECK;

/* A certificate and its key in a sealed memfd: the chain's bytes, then the key's. */
struct certificate_file {
	int fd; /* -1: none */
	struct message_certificate sizes;
};

/* Send the limits, which may have changed, and a certificate, which the module then owns. */
void http_workers_limit(void);
void http_workers_certify(struct certificate_file certificate);

/* Accepts no more connections, except (last) those that already wait, and ends each after the
 * answer to its next request. */
void http_workers_drain(bool last);

void http_workers_fini(void);
