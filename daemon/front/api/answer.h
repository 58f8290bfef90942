/* Answers of the service: texts, JSON, problems, and results of jobs. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "front/jobs/job.h"
#include "link/answer.h"

/* Makes the answer a text, which it then owns (malloc'ed; NULL: no memory). */
void answer_text(struct answer *answer, int status, const char *content_type, char *text,
                 size_t size);

/* Makes the answer JSON and takes over the value's reference. */
void answer_json(struct answer *answer, int status, json_t *value);

/* The document of a problem (RFC 9457). problem may be NULL. */
json_t *answer_describe_problem(enum error error, const struct problem *problem);

/* Makes the answer a problem (RFC 9457), with Retry-After if that may help. problem: or NULL. */
void answer_problem(struct answer *answer, enum error error, const struct problem *problem);

/* Makes the answer the result of a finished job: its image or its problem, with the times of all
 * stages. received_ns: the time in which the body arrived. */
void answer_job(struct answer *answer, const struct job *job, uint64_t received_ns);
