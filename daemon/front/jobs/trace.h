/* The trace of a request: from the client's header traceparent (W3C Trace Context), or one of its
 * own. Answers have no traceresponse, which no standard has settled. */
#pragma once

#include <stdbool.h>

#include "wire/wire.h"

struct trace {
	char id[TRACE_ID_SIZE];    /* the trace's; "": none */
	char parent[SPAN_ID_SIZE]; /* the client's span's; "": none */
	bool sampled;              /* the client's spans are recorded */
	char span[SPAN_ID_SIZE];   /* the request's span's; "": it is not recorded */
};

/* Parses the header's value. Returns false if it is invalid; there is then no trace. */
bool trace_parse(const char *header, struct trace *trace);

/* Decides whether the request's span is recorded: this share of requests is, except those whose
 * client's spans are not. A request without a trace gets a new one. */
void trace_record(struct trace *trace, double share);

void trace_new_span(char id[SPAN_ID_SIZE]);

enum { TRACE_TEXT_SIZE = 72 };

/* The span that log lines name: the request's, or the client's. */
const char *trace_span(const struct trace *trace);

/* The trace's id if it is recorded, else "". */
const char *trace_exemplar(const struct trace *trace);

/* Writes " trace=ID span=ID" for a log line, nothing if there is no trace. Returns text. */
const char *trace_text(const struct trace *trace, char text[TRACE_TEXT_SIZE]);
