/* Refusals, counted and in the log: who is refused, and why. The first of a client for a reason has
 * a line; what follows within a minute is counted, and said together at its end. However many
 * clients come, there are only so many lines a minute. */
#ifndef FRONT_API_REFUSALS_H
#define FRONT_API_REFUSALS_H

#include "common/error.h"
#include "front/jobs/trace.h"

struct refusal {
	const char *client;                          /* its address, or what its token is called */
	const char *reason;                          /* slug of the error */
	const char *detail;                          /* in words, or NULL */
	int status;                                  /* of HTTP: from 500 on it is a warning */
	const char *request, *method, *path, *route; /* NULL: none has been read */
	const struct trace *trace;                   /* likewise */
};

enum error refusals_init(void) MUST_CHECK;

void refusals_fini(void);

/* Says what has only been counted. */
void refusals_tell(void);

/* Counts a refusal in the metrics, and logs it unless such a one was lately. */
void refusals_note(const struct refusal *refusal);

#endif
