/* Sockets to listen on: addresses of the configuration, or what systemd has passed. */
#ifndef HTTP_LISTENER_H
#define HTTP_LISTENER_H

#include <stdbool.h>

#include "common/error.h"
#include "front/config/address.h"
#include "front/config/config.h"

enum { LISTENERS_MAX = 2 * CONFIG_LIST_MAX };

struct listener {
	const char *address; /* in words; the configuration's */
	struct address at;   /* unless it was passed */
	bool metrics;        /* serves metrics and health alone, without tokens */
	bool tls;
	bool local;    /* only processes of this host reach it */
	bool optional; /* an address that nobody has asked for by name */
	bool passed;   /* by systemd */
	int fd;        /* once it is open; -1 before */
};

/* Lists what a configuration wants served. Sockets that systemd has passed take the place of
 * `listen`; of those, one that is named (FileDescriptorName=) `tls` or `metrics` is that. */
unsigned listener_list(const struct config *config, struct listener list[LISTENERS_MAX]);

/* Opens it, unless it was passed: the descriptor is the caller's. Writes to the log why it cannot.
 * mode: of a Unix socket; one that nobody serves any more is replaced. ERR_OK with the descriptor
 * -1: it is optional, and there is no place for it. */
enum error listener_open(struct listener *listener, unsigned mode) MUST_CHECK;

#endif
