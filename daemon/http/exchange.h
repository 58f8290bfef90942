/* A request on a connection of libmicrohttpd (other users: headers.c, main.c), and its answer. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

#include "http/intake.h"
#include "http/service.h"
#include "wire/network.h"

struct exchange;

/* A connection's state between requests; its socket context, if any, begins with this struct. */
struct peer {
	struct intake intake;
	struct MHD_Connection *connection;
	struct service_guest guest;
	struct exchange *exchange;      /* the request under way, or the refusal; or NULL */
	const struct sockaddr *address; /* the client's, or: */
	struct sockaddr_storage source; /* the one that a proxy has named by the PROXY protocol */
	char name[HEAD_CLIENT_SIZE];    /* the client's, by headers_name_client() */
	bool monitoring;                /* it came to an address for metrics and health alone */
	bool loopback;                  /* or to a loopback address */
	bool left;                      /* the client has closed its side */
	bool gone;                      /* and its socket */
	bool refused;                   /* no further request is read */
};

/* For service_init(). */
extern const struct connection_calls exchange_calls;

/* Sets a connection's timeout to the current idle-timeout, which a reload may have changed. */
void exchange_set_timeout(struct MHD_Connection *connection);

/* Tells the service how much a peer has read of its answer. */
void exchange_look(void *peer);

/* Answers invalid input, or the request that it makes impossible, and ends the connection. */
void exchange_break(void *peer, enum error error, const struct problem *problem);

/* The handler for MHD_start_daemon(). */
enum MHD_Result exchange_handle(void *context, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *data,
                                size_t *size, void **exchange);

/* Ends one, whatever its state; NULL is none. */
void exchange_free(struct exchange *exchange);

/* Handles a client that has closed its side (peer->left), or its socket (peer->gone). Only the
 * latter abandons a request that waits for its answer; a request that is being answered goes on
 * until it fails. */
void exchange_leave(struct exchange *exchange);

/* From now on each answer closes its connection. */
void exchanges_drain(void);
