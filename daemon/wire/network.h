/* Networks of IP addresses, and the clients of Unix sockets. */
#ifndef WIRE_NETWORK_H
#define WIRE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

struct sockaddr;

enum { NETWORKS_MAX = 16 };

struct network {
	unsigned char address[16]; /* of IPv6, into which IPv4 is mapped */
	uint32_t bits;             /* of it that count, up to 128 */
};

/* All zeros: none. */
struct networks {
	struct network network[NETWORKS_MAX];
	uint32_t count;
	uint32_t unix_sockets; /* 1: their clients, too */
};

bool network_valid(const char *text);

/* Adds ADDRESS, ADDRESS/BITS, or unix for all clients of Unix sockets. False: it is none of these,
 * or one too many. */
bool networks_add(struct networks *networks, const char *text);

/* True if one of the networks has the address. */
bool networks_have(const struct networks *networks, const struct sockaddr *address);

#endif
