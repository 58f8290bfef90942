/* Networks, as the configuration writes them: ADDRESS, ADDRESS/BITS, or unix for all clients of
 * Unix sockets. */
#ifndef FRONT_CONFIG_NETWORK_H
#define FRONT_CONFIG_NETWORK_H

#include <stdbool.h>
#include <sys/socket.h>

#include "front/config/config.h"

bool network_valid(const char *text);

/* True if one of the networks has the address; an IPv4 address may be mapped into IPv6. */
bool networks_have(const struct config_list *networks, const struct sockaddr *address);

#endif
