/* Addresses to listen on, as the configuration writes them. */
#ifndef FRONT_CONFIG_ADDRESS_H
#define FRONT_CONFIG_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

struct address {
	const char *text; /* without tls: before it; the caller's */
	bool tls;
	socklen_t size; /* of the socket's address; 0: there is none */
	struct sockaddr_storage socket;
};

/* Reads ADDRESS:PORT or [ADDRESS]:PORT with a numeric address, tls: before these, or unix:PATH.
 * False: it has none of these forms; the text and `tls` are good in any case. */
bool address_parse(const char *text, struct address *address);
bool address_valid(const char *text);

/* True if only processes of this host reach it. */
bool address_is_local(const struct sockaddr *socket);

#endif
