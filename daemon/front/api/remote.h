/* The requests and guests of one HTTP worker, as its messages tell of them (link/link.def).
 * They are input: what cannot be is refused, and costs the worker its life, not the service. */
#ifndef FRONT_API_REMOTE_H
#define FRONT_API_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct remote;

/* Takes over the front's end of a link_pair(), also on failure (NULL). broken: it has sent what is
 * wrong (a message's name), or (NULL) nothing more comes from it. */
struct remote *remote_new(int socket, void (*broken)(void *context, const char *what),
                          void *context) MUST_CHECK;

/* The worker has ended: its requests are abandoned, asynchronous jobs go on. NULL is none. */
void remote_free(struct remote *remote);

/* Tells it to accept no more connections, after (last) those that wait, and to end each after an
 * answer. */
void remote_drain(struct remote *remote, bool last);

/* Asks for a sign of life. False while it has been asked for, and there is none. */
bool remote_ping(struct remote *remote);

/* For all HTTP workers: */

/* Does what is due for their requests, for LINK_TURN_NS each at most. Call it before each wait of
 * the loop. Returns true if there is more. */
bool remotes_turn(void);

/* Requests under way; and whether, in a drain, there are none and no more come. */
unsigned remotes_requests(void);
bool remotes_drained(void);

/* The time is over: answers what still waits that the service is shutting down. */
void remotes_end(void);

#endif
