/* Answers about asynchronous jobs. */
#pragma once

#include "front/api/request.h"

/* Hands the request's job to the store, and answers 202 with its address; with an archive, or a key
 * of the client's (Idempotency-Key), leaves it unanswered until its waiter is woken, and is then
 * called again. */
void async_accept(struct request *request);

/* See struct store_owner. */
void async_pack(const struct stored *stored, struct head_writer *answer);

/* Routes whose argument is a job: each answers the request, or leaves it unanswered until its
 * waiter is woken, and is then called again. */
void async_list(struct request *request);
void async_get_job(struct request *request);
void async_get_result(struct request *request);
void async_get_events(struct request *request);
void async_delete_job(struct request *request);
