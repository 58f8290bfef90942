/* The spans of a request and of its job, for a collector of traces. */
#ifndef FRONT_API_SPANS_H
#define FRONT_API_SPANS_H

#include "front/api/request.h"

/* A job has ended: sends the spans of its stages. */
void spans_of_job(const struct job *job);

/* A request is answered: sends its span. */
void spans_of_request(const struct request *request);

#endif
