/* Spans as a request of OTLP, the OpenTelemetry protocol, in its JSON encoding
 * (https://opentelemetry.io/docs/specs/otlp/, ExportTraceServiceRequest). */
#ifndef TRACE_OTLP_H
#define TRACE_OTLP_H

#include <stddef.h>

#include "common/span.h"

/* Returns the request with these spans, of a service on this host; the caller frees it. NULL
 * without memory. Texts that are no UTF-8 are left out. */
char *otlp_encode(const struct span *spans, size_t count, const char *host);

#endif
