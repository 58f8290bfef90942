/* The routes: what the service answers to, and how. */
#ifndef FRONT_ROUTES_H
#define FRONT_ROUTES_H

#include <stdbool.h>

#include "front/config.h"
#include "front/request.h"

void routes_init(const struct config *config);

/* The service accepts no more work: requests with an image are refused with 503. */
void routes_drain(void);

/* Looks at a request whose headers and query are known. Afterwards it has its answer, or it wants
 * its body and then routes_finish(). */
void routes_begin(struct request *request);

/* Acts on a request whose body is complete. Afterwards it has its answer, or a job of which `done`
 * is called later, from the loop. */
void routes_finish(struct request *request, void (*done)(struct job *job, void *context),
                   void *context);

/* The client has gone: gives the request's job up. */
void routes_abandon(struct request *request);

/* Takes the outcome of the request's job into its answer. */
void routes_complete(struct request *request);

/* The name of the route, for the metrics. */
const char *routes_name(const struct request *request);

#endif
