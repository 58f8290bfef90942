/* Answers HAProxy's agent checks: whoever connects gets one line. `ready up N%`: the server takes
 * requests, and N of a hundred parts of its configured weight, which is how much of max-wait is
 * free (admission_free(); at least 1, as 0 would mean none). `drain`: the service is being stopped.
 */
#ifndef FRONT_AGENT_H
#define FRONT_AGENT_H

#include "common/error.h"

enum error agent_init(void) MUST_CHECK;
void agent_fini(void);

/* Answers at this listening socket, which is the module's from then on, also on failure. */
enum error agent_serve(int fd) MUST_CHECK;

/* The answer is `drain` from now on. */
void agent_drain(void);

#endif
