/* The routes: which requests the service answers, and how. The pages for browsers are the files of
 * page/, which are built into the program. */
#ifndef FRONT_API_ROUTES_H
#define FRONT_API_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/file.h"
#include "front/api/request.h"
#include "front/config/config.h"

extern const struct embedded page_embedded[];
extern const size_t page_embedded_count;

void routes_init(const struct config *config);

/* True if the service can filter images now: the answer of /readyz. */
bool routes_ready(void);

/* The service is about to end: it reports not ready, and keeps no more results. Later requests are
 * still answered. */
void routes_drain(void);

/* Handles a request whose headers and query are known. Afterwards it has its answer, or it expects
 * its body; otherwise the body is to be dropped. */
void routes_begin(struct request *request);

/* Handles a request without an answer whose body is complete. Afterwards it has its answer, or the
 * loop wakes its waiter later, for routes_resume(). */
void routes_finish(struct request *request);

/* Answers the request if what it waits for has happened. */
void routes_resume(struct request *request);

/* The client has gone: abandons what was done for it alone. */
void routes_abandon(struct request *request);

#endif
