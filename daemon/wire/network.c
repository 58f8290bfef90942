/* Networks. All addresses are compared as those of IPv6, into which IPv4 is mapped. */
#include "wire/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const char unix_sockets[] = "unix";
static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool parse_bits(const char *text, unsigned max, uint32_t *bits)
{
	char *end;

	*bits = (uint32_t)strtoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && strlen(text) <= 3 && !*end && *bits <= max;
}

bool networks_add(struct networks *networks, const char *text)
{
	struct network *network = &networks->network[networks->count];
	const char *slash = strchr(text, '/');
	const size_t length = slash ? (size_t)(slash - text) : strlen(text);
	char address[INET6_ADDRSTRLEN];
	bool valid;

	if (!strcmp(text, unix_sockets)) {
		networks->unix_sockets = 1;
		return true;
	}
	if (networks->count == NETWORKS_MAX || length >= sizeof address)
		return false;
	memcpy(address, text, length);
	address[length] = '\0';
	network->bits = 128;
	if (inet_pton(AF_INET6, address, network->address) == 1) {
		valid = !slash || parse_bits(slash + 1, 128, &network->bits);
	} else {
		memcpy(network->address, mapped, sizeof mapped);
		valid = inet_pton(AF_INET, address, network->address + sizeof mapped) == 1 &&
		        (!slash || parse_bits(slash + 1, 32, &network->bits));
		network->bits += slash ? 96 : 0;
	}
	networks->count += valid;
	return valid;
}

bool network_valid(const char *text)
{
	struct networks none = {0};

	return networks_add(&none, text);
}

bool networks_have(const struct networks *networks, const struct sockaddr *address)
{
	unsigned char own[16];

	if (address->sa_family == AF_UNIX)
		return networks->unix_sockets;
	if (address->sa_family == AF_INET6) {
		memcpy(own, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof own);
	} else if (address->sa_family == AF_INET) {
		memcpy(own, mapped, sizeof mapped);
		memcpy(own + sizeof mapped, &((const struct sockaddr_in *)address)->sin_addr, 4);
	} else {
		return false;
	}
	for (uint32_t i = 0; i < networks->count; i++) {
		const unsigned char *other = networks->network[i].address;
		const uint32_t bits = networks->network[i].bits, whole = bits / 8;

		if (!memcmp(own, other, whole) &&
		    (bits % 8 == 0 || !((own[whole] ^ other[whole]) >> (8 - bits % 8))))
			return true;
	}
	return false;
}
