/* Counts and logs refusals: who is refused, and why. The first refusal of a client for a reason
 * gets a line; those that follow within a minute are counted, and logged together at its end. The
 * number of lines a minute is bounded, however many clients there are. */
#ifndef FRONT_API_REFUSALS_H
#define FRONT_API_REFUSALS_H

#include "base/error.h"
#include "front/jobs/trace.h"

struct refusal {
	const char *client;                /* its address, or its token's name */
	const char *reason;                /* slug of the error */
	const char *detail;                /* the message, or NULL */
	int status;                        /* HTTP status: from 500 on it is a warning */
	const char *request;               /* its id */
	const char *method, *path, *route; /* NULL: what came is no request */
	const struct trace *trace;         /* likewise */
};

enum error refusals_init(void) MUST_CHECK;

void refusals_fini(void);

/* Logs refusals that were only counted. */
void refusals_tell(void);

/* Counts a refusal in the metrics, and logs it unless a similar one was logged just before. */
void refusals_note(const struct refusal *refusal);

#endif
