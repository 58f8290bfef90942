/* The routes: what the service answers to, and how. */
#ifndef FRONT_API_ROUTES_H
#define FRONT_API_ROUTES_H

#include <stdbool.h>

#include "front/api/request.h"
#include "front/config/config.h"

void routes_init(const struct config *config);

/* The service is about to end: it is not ready any more, and keeps no more results. Requests that
 * still come are answered. */
void routes_drain(void);

/* Looks at a request whose headers and query are known. Afterwards it has its answer; or it wants
 * its body (expected), which is otherwise to be dropped. */
void routes_begin(struct request *request);

/* Acts on a request without an answer whose body is complete. Afterwards it has its answer, or its
 * waiter is woken later, from the loop, for routes_resume(). */
void routes_finish(struct request *request);

/* Looks whether there is now what the request waits for, and answers it then. */
void routes_resume(struct request *request);

/* The client has gone: gives up what was done for it alone. */
void routes_abandon(struct request *request);

/* Counts and logs a request's answer, which is on its way. */
void routes_answered(const struct request *request);

/* The name of the route, for the metrics. */
const char *routes_name(const struct request *request);

#endif
