/* Addresses to listen on, as written in the configuration. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

struct address {
	const char *text; /* without the prefix tls:; points into the caller's text */
	bool tls;
	socklen_t size; /* bytes of `socket`; 0: invalid */
	struct sockaddr_storage socket;
};

/* Parses ADDRESS:PORT or [ADDRESS]:PORT with a numeric address, both optionally prefixed with tls:,
 * or unix:PATH. Returns false for any other form; `text` and `tls` are set in any case. */
bool address_parse(const char *text, struct address *address);
bool address_valid(const char *text);

/* True if only processes on this host can connect: a loopback or Unix address. */
bool address_is_local(const struct sockaddr *socket);
