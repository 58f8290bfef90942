/* The ends of jobs and requests, for operators: log lines, counts, spans. The first refusal of a
 * client for a reason gets a line; those that follow within a minute are counted, and logged
 * together. The number of lines a minute is therefore bounded, however many clients there are. */
#pragma once

#include "front/api/request.h"

enum error outcome_init(void) MUST_CHECK;
void outcome_fini(void);

/* Logs refusals that were only counted. */
void outcome_tell_refusals(void);

/* A job has ended. id: the request's. */
void outcome_record(const char *id, const struct job *job);

/* Does the same for a job whose client left before its end. */
void outcome_gone(const char *id, const struct job *job);

/* A request is answered, or a client without one is refused. */
void outcome_answered(const struct request *request);
