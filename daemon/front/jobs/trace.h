/* The trace that a request belongs to, from the client's header traceparent (W3C Trace Context). It
 * is not passed on, only named in the log. */
#ifndef FRONT_JOBS_TRACE_H
#define FRONT_JOBS_TRACE_H

#include <stdbool.h>

struct trace {
	char id[33];     /* id of the trace, in hexadecimal; "": none */
	char parent[17]; /* id of the client's span */
};

/* Parses the header's value. Returns false if it is invalid; there is then no trace. */
bool trace_parse(const char *header, struct trace *trace);

enum { TRACE_TEXT_SIZE = 72 };

/* Writes " trace=ID span=ID" for a log line, nothing if there is no trace. Returns text. */
const char *trace_text(const struct trace *trace, char text[TRACE_TEXT_SIZE]);

#endif
