/* The part of the configuration that readers of connections need. */
#ifndef WIRE_LIMITS_H
#define WIRE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/network.h"

enum { HTTP_SOCKETS_MAX = 32 };

/* A listening socket. */
struct http_socket {
	int fd;
	bool tls;
	bool metrics; /* for metrics and health alone, without tokens */
};

/* Values that a reload may change. */
struct limits {
	uint64_t idle_timeout, header_timeout, keepalive_timeout, body_timeout; /* seconds */
	uint64_t body_rate;  /* least, bytes a second */
	uint64_t spool_size; /* most bytes of a body in memory */
	struct networks trusted_proxies;
};

#endif
