/* The routes: the requests that the service answers, and the way of each from beginning to end. The
 * pages for browsers are the files of page/, which are built into the program. */
#pragma once

#include <stddef.h>

#include "base/file.h"
#include "front/api/request.h"

extern const struct embedded page_embedded[];
extern const size_t page_embedded_count;

/* Prepares for the end of the service: it reports not ready, and keeps no more results. Later
 * requests are still answered. */
void routes_drain(void);

/* Makes a job of a stored request again: see struct store_owner. */
struct job *routes_revive(const struct stored *s, enum error *e, struct problem *problem);

/* Begins a request, and takes over its head, also on failure (NULL: no memory). `wake` is its
 * waiter's; `cut` gets the same context. refused: the error to answer with, as its connection has
 * no place; ERR_OK: it has one. Afterwards the request has its answer, wants its body, or waits for
 * routes_resume(). */
struct request *routes_open(struct head *head, enum error refused, const struct problem *why,
                            void (*wake)(void *context), void (*cut)(void *context),
                            void *context) MUST_CHECK;

/* Begins the refusal of a client that has sent no request: it has its answer. NULL: no memory. */
struct request *routes_refuse(const char *client, enum error error,
                              const struct problem *problem) MUST_CHECK;

/* Finds the route of a request that has been read; refuses what can be refused before its body. */
void routes_begin(struct request *request);

/* Makes an error the request's answer, unless it has one. Its body is no longer wanted. */
void routes_fail(struct request *request, enum error error, const struct problem *problem);

/* Records that the body of a request without an answer is complete, with `size` bytes in the lent
 * room. Afterwards it has its answer, or its waiter is woken, for routes_resume(). */
void routes_finish(struct request *request, uint64_t size);

/* Answers the request if the event that it waits for has happened. */
void routes_resume(struct request *request);

/* Abandons work that was done for a client alone that has gone. */
void routes_abandon(struct request *request);

/* Completes the answer, with the headers that every answer has, and counts it as sent. */
const struct answer *routes_answer(struct request *request);

/* Forgets a request, at any time. */
void routes_close(struct request *request);
