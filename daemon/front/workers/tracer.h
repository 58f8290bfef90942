/* Sends the spans of requests to the trace worker (convolved-trace), which sends them to a
 * collector (otlp-endpoint). Spans that the worker does not take at once are lost, and counted. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "front/jobs/job.h"
#include "front/jobs/trace.h"
#include "wire/wire.h"

enum error tracer_init(void) MUST_CHECK;
void tracer_fini(void);

/* Decides whether the spans of a new request are recorded. */
void tracer_join(struct trace *trace);

/* Makes a span for a part of a recorded request, between two times of loop_now(), with an id of its
 * own; its parent is the request's span. */
struct span tracer_part(const struct trace *trace, const char *name, uint64_t start, uint64_t end);

void tracer_send(const struct span *span);

/* Sends the span of a tile that a device of this name has done. */
void tracer_tile(const struct task *task, const struct message_tile_done *done, const char *device);
