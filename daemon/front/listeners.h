/* Listening sockets, of the configuration or passed by systemd, for HTTP or the agent checks; and
 * access to them: tokens, the certificate. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "front/config/config.h"
#include "link/address.h"

enum { LISTENERS_MAX = 3 * CONFIG_LIST_MAX };

enum listener_use {
	LISTENER_CLIENTS,
	LISTENER_METRICS, /* metrics and health alone, without tokens */
	LISTENER_AGENT,   /* agent checks (front/agent.h) */
	LISTENER_USES
};

struct listener {
	struct address at; /* if it was passed: its text, for messages, and whether it is for TLS */
	enum listener_use use;
	bool local;    /* only processes of this host can reach it */
	bool optional; /* a default address, which the configuration does not name */
	bool passed;   /* by systemd */
	int fd;        /* once open; -1 before */
};

/* Lists the sockets that the configuration wants. Sockets passed by systemd replace `listen`; those
 * named (FileDescriptorName=) `tls`, `metrics` or `agent` serve that. */
unsigned listener_list(struct listener list[LISTENERS_MAX]);

/* Opens it, unless it was passed; the caller owns the descriptor, -1 if the address is optional and
 * cannot be opened. Logs the reason on failure. */
enum error listener_open(struct listener *listener) MUST_CHECK;

/* Opens every address to listen on, or receives the sockets that systemd passed, and hands them to
 * the modules that serve there. Logs which address cannot be opened, and why. */
enum error listeners_init(void) MUST_CHECK;

/* Accepts no more connections, and ends each after the answer to its next request. */
void listeners_drain(void);

/* Reads the tokens and the certificate of a configuration, for listeners_commit(), and checks
 * whether the addresses of the one in force, which stay, need them. Returns false and logs the
 * reason if anything is invalid. */
bool listeners_read(const struct config *read) MUST_CHECK;

/* Activates what listeners_read() last read. */
void listeners_commit(void);
void listeners_fini(void);
