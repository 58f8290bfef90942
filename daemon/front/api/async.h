/* What the service answers about asynchronous jobs. */
#ifndef FRONT_API_ASYNC_H
#define FRONT_API_ASYNC_H

#include "front/api/request.h"

/* Hands the request's job to the store; answers with 202 and where to ask for it. */
void async_accept(struct request *request);

/* What routes do with the job that is their argument: each answers the request, or leaves it
 * without an answer until its waiter is woken, and is called again then. */
void async_get_job(struct request *request);
void async_get_result(struct request *request);
void async_get_events(struct request *request);
void async_delete_job(struct request *request);

#endif
