/* Records the end of a client's job for operators: a log line, and counts. */
#ifndef FRONT_API_OUTCOME_H
#define FRONT_API_OUTCOME_H

#include "front/jobs/job.h"

/* id: the request's. */
void outcome_record(const char *id, const struct job *job);

/* The same for a job whose client has left before its end. */
void outcome_gone(const char *id, const struct job *job);

#endif
