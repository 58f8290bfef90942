/* Answers HAProxy's agent checks: each connection gets one line. `ready up N%`: the server accepts
 * requests, at N % of its configured weight, which is the free part of max-wait (admission_free();
 * at least 1, as 0 would mean none). `drain`: the service is being stopped. */
#pragma once

#include "base/error.h"

enum error agent_init(void) MUST_CHECK;
void agent_fini(void);

/* Answers at this listening socket, which the module owns from then on, also on failure. */
enum error agent_serve(int fd) MUST_CHECK;

/* Answers `drain` from now on. */
void agent_drain(void);
