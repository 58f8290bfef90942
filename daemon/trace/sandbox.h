/* The sandbox of the trace worker: it may connect to the collector, and read files (names of hosts,
 * certificates); it may not write any, or start anything. */
#ifndef TRACE_SANDBOX_H
#define TRACE_SANDBOX_H

#include "common/error.h"

/* Enters it, before any thread is started. */
enum error trace_sandbox_enter(void) MUST_CHECK;

#endif
