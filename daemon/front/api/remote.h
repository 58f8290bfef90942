/* The requests and guests of one HTTP worker, as its messages report them (link/link.def). Messages
 * are input: an impossible one is refused, and costs the worker its life, not the service. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct remote;

/* Takes over the front's end of a link_pair(), also on failure (NULL). broken: the worker has sent
 * an invalid message (of this name), or (NULL) sends nothing more. */
struct remote *remote_new(int socket, void (*broken)(void *context, const char *what),
                          void *context) MUST_CHECK;

/* Abandons the requests of a worker that has ended; asynchronous jobs go on. NULL is none. */
void remote_free(struct remote *remote);

/* Tells the worker to accept only (last) connections that wait, and to end each after an answer. */
void remote_drain(struct remote *remote, bool last);

/* Asks the worker for a sign of life. Returns false while an earlier question is unanswered. */
bool remote_ping(struct remote *remote);

/* For all HTTP workers: */

/* Does the pending work of all workers' requests, for LINK_TURN_NS each at most. Call it before
 * each wait of the loop. Returns true if there is more. */
bool remotes_turn(void);

/* Return the number of requests under way; and if, in a drain, there are none and none come. */
unsigned remotes_requests(void);
bool remotes_drained(void);

/* Answers all waiting requests that the service is shutting down, when the time is over. */
void remotes_end(void);
