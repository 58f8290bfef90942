/* The trace that a client says its request belongs to: the header traceparent of the W3C's Trace
 * Context. It is not passed on to anybody, only named in the lines of the log. */
#ifndef FRONT_JOBS_TRACE_H
#define FRONT_JOBS_TRACE_H

#include <stdbool.h>

struct trace {
	char id[33];     /* of the trace, in hexadecimal; "": the request belongs to none */
	char parent[17]; /* of the client's span */
};

/* Reads a header's value. False: it is not valid, and the trace is none. */
bool trace_parse(const char *header, struct trace *trace);

enum { TRACE_TEXT_SIZE = 72 };

/* Writes " trace=ID span=ID" for a line of the log; nothing if there is no trace. Returns text. */
const char *trace_text(const struct trace *trace, char text[TRACE_TEXT_SIZE]);

#endif
