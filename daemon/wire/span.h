/* A span: a part of a request, with its times, as tracing systems know it (OpenTelemetry). */
#ifndef WIRE_SPAN_H
#define WIRE_SPAN_H

#include <stdint.h>

enum span_text {
#define SPAN_TEXT(symbol, name) SPAN_##symbol,
#define SPAN_NUMBER(symbol, name)
#include "wire/spans.def"
#undef SPAN_TEXT
#undef SPAN_NUMBER
	SPAN_TEXTS
};

enum span_number {
#define SPAN_TEXT(symbol, name)
#define SPAN_NUMBER(symbol, name) SPAN_##symbol,
#include "wire/spans.def"
#undef SPAN_TEXT
#undef SPAN_NUMBER
	SPAN_NUMBERS
};

enum { SPAN_TEXT_SIZE = 96, TRACE_ID_SIZE = 33, SPAN_ID_SIZE = 17 };

struct span {
	/* Ids in lower-case hexadecimal; parent "": none. */
	char trace[TRACE_ID_SIZE], id[SPAN_ID_SIZE], parent[SPAN_ID_SIZE];
	char name[21];
	uint32_t server;                       /* 1: of a request, as its client sees it */
	uint32_t failed;                       /* 1: by a fault of the service */
	uint64_t start, end;                   /* nanoseconds since 1970 */
	char text[SPAN_TEXTS][SPAN_TEXT_SIZE]; /* "": none */
	uint64_t number[SPAN_NUMBERS];         /* 0: none */
};

#endif
