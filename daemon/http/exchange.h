/* One request on a connection of libmicrohttpd, and its answer. Only this, headers.c and http.c
 * know that library. */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include <microhttpd.h>
#include <stdbool.h>

#include "http/listener.h"

struct exchange;

/* What a connection knows of its requests; its socket context, if it has one, begins with this. */
struct peer {
	struct exchange *exchange; /* that is under way, or NULL */
	bool served;               /* it has sent a request */
	bool left;                 /* the client has closed its side */
	bool refused;              /* no request is read */
};

enum error exchanges_init(const struct config *config) MUST_CHECK;
void exchanges_fini(void);

/* Gives a connection the present idle-timeout: a reload may have changed it since the daemon, or
 * the connection, was made. */
void exchange_set_timeout(struct MHD_Connection *connection);

/* Answers a connection of this client, whose peer is known, before it has sent a request. It ends
 * with that. */
void exchange_refuse(struct MHD_Connection *connection, const char *client, enum error error,
                     const struct problem *problem);

/* For MHD_start_daemon(): the handler, whose context is the struct listener, and the end. */
enum MHD_Result exchange_handle(void *context, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *data,
                                size_t *size, void **exchange);
void exchange_completed(void *context, struct MHD_Connection *connection, void **exchange,
                        enum MHD_RequestTerminationCode code);

/* The client has closed its side (peer->left). A request that waits for its answer is given up; one
 * that is being answered is not. */
void exchange_leave(struct exchange *exchange);

/* How many have begun and are not yet completely answered. */
unsigned exchanges_active(void);

/* From now on each answer closes its connection. */
void exchanges_drain(void);

/* Answers those that wait for something, or would from now on, that they are too late: a daemon
 * cannot be stopped while one of its connections is suspended. */
void exchanges_end(void);

#endif
