/* Records the ends of clients' jobs and requests for operators: a log line, counts, spans. */
#ifndef FRONT_API_OUTCOME_H
#define FRONT_API_OUTCOME_H

#include "front/api/request.h"

/* id: the request's. */
void outcome_record(const char *id, const struct job *job);

/* The same for a job whose client has left before its end. */
void outcome_gone(const char *id, const struct job *job);

/* A request is answered: sends its span. */
void outcome_send_span(const struct request *request);

#endif
