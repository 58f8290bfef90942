/* The configuration of connections: networks of IP addresses, limits, listening sockets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sockaddr;

enum { NETWORKS_MAX = 16, HTTP_SOCKETS_MAX = 32 };

struct network {
	unsigned char address[16]; /* IPv6; IPv4 is mapped into it */
	uint32_t bits;             /* leading bits that count, up to 128 */
};

/* All zeros: none. */
struct networks {
	struct network network[NETWORKS_MAX];
	uint32_t count;
	uint32_t unix_sockets; /* 1: their clients, too */
};

/* A listening socket. */
struct http_socket {
	int fd;
	bool tls;
	bool metrics; /* for metrics and health alone, without tokens */
};

/* Limits of connections, which a reload may change. */
struct limits {
	uint64_t idle_timeout, header_timeout, keepalive_timeout, body_timeout; /* seconds */
	uint64_t body_rate;  /* least, bytes a second */
	uint64_t spool_size; /* most bytes of a body in memory */
	struct networks trusted_proxies;
};

bool network_valid(const char *text);

/* Adds ADDRESS, ADDRESS/BITS, or unix for all clients of Unix sockets. False: it is none of these,
 * or one too many. */
bool networks_add(struct networks *networks, const char *text);

/* True if one of the networks has the address. */
bool networks_have(const struct networks *networks, const struct sockaddr *address);
