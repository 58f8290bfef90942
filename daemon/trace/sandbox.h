/* The sandbox of the trace worker: it may connect to the collector, and read the files that name
 * hosts and certificates; it may open no other, write none, and start nothing. */
#ifndef TRACE_SANDBOX_H
#define TRACE_SANDBOX_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Enters it, before any thread is started. ports: of TCP, to which it may connect. */
enum error trace_sandbox_enter(const uint16_t *ports, size_t count) MUST_CHECK;

#endif
