/* The beginning and end of every request, whatever its route is, and the headers of every answer.
 */
#ifndef FRONT_API_SERVE_H
#define FRONT_API_SERVE_H

#include "front/api/request.h"

/* Begins with a request, and takes over what is in its head, also on failure (NULL: no memory). Its
 * waiter gets `wake` and the context, which `cut` gets, too. refused: the answer to it, as its
 * connection has no place; ERR_OK: it has one. The request then has its answer, or wants its body,
 * or waits for routes_resume(). */
struct request *serve_begin(struct head *head, enum error refused, const struct problem *why,
                            void (*wake)(void *context), void (*cut)(void *context),
                            void *context) MUST_CHECK;

/* Begins with the refusal of a client that has sent no request: it has its answer. NULL: no memory.
 */
struct request *serve_refuse(const char *client, enum error error,
                             const struct problem *problem) MUST_CHECK;

/* Forgets a request, at any time. */
void serve_end(struct request *request);

/* Makes an error its answer, unless it has one. Its body is wanted no more. */
void serve_fail(struct request *request, enum error error, const struct problem *problem);

/* The body is complete, so many bytes are where there was room for them. Afterwards the request has
 * its answer, or its waiter is woken. */
void serve_finish(struct request *request, uint64_t size);

/* Completes the answer, with the headers that every answer has, and counts it as sent. */
const struct answer *serve_answer(struct request *request);

#endif
