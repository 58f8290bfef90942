/* The origin of a request, as far as a browser reports it. Pages of other sites may link to the
 * service, but not use it through their visitors' browsers, unless `cors-origins` allows them; nor
 * through a name of their own that they have pointed at a loopback address. */
#pragma once

#include "front/api/request.h"

/* Checks Host, Origin and Sec-Fetch-Site, and sets request->cors. */
enum error origin_check(struct request *request, struct problem *problem) MUST_CHECK;

/* Returns true for a preflight: a page that may use the service asks which requests it may send. */
bool origin_asks(const struct request *request);

/* Adds the headers that let the page read the answer (Fetch standard, 3.2). */
void origin_mark(struct request *request);

/* Adds, in answer to a preflight, the headers that permit a request with these methods (a list). */
void origin_permit(struct request *request, const char *methods);
