#include "trace/otlp.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

enum { KIND_INTERNAL = 1, KIND_SERVER = 2, STATUS_ERROR = 2 };

static const char *const text_names[] = {
#define SPAN_TEXT(symbol, name) name,
#define SPAN_NUMBER(symbol, name)
#include "common/spans.def"
#undef SPAN_TEXT
#undef SPAN_NUMBER
};

static const char *const number_names[] = {
#define SPAN_TEXT(symbol, name)
#define SPAN_NUMBER(symbol, name) name,
#include "common/spans.def"
#undef SPAN_TEXT
#undef SPAN_NUMBER
};

/* Integers of 64 bits are texts in the encoding. */
static json_t *number(uint64_t n)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, n);
	return json_string(text);
}

static void add_text(json_t *list, const char *name, const char *text)
{
	if (*text)
		json_array_append_new(
		    list, json_pack("{s:s, s:{s:s}}", "key", name, "value", "stringValue", text));
}

static void add_number(json_t *list, const char *name, uint64_t n)
{
	if (n)
		json_array_append_new(
		    list, json_pack("{s:s, s:{s:o}}", "key", name, "value", "intValue", number(n)));
}

static json_t *attributes(const struct span *span)
{
	json_t *list = json_array();

	for (int i = 0; i < SPAN_TEXTS; i++)
		add_text(list, text_names[i], span->text[i]);
	for (int i = 0; i < SPAN_NUMBERS; i++)
		add_number(list, number_names[i], span->number[i]);
	return list;
}

static json_t *describe(const struct span *span)
{
	json_t *json = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "traceId", span->trace,
	                         "spanId", span->id, "name", span->name, "kind",
	                         span->server ? KIND_SERVER : KIND_INTERNAL, "startTimeUnixNano",
	                         number(span->start), "endTimeUnixNano", number(span->end),
	                         "attributes", attributes(span));

	if (*span->parent)
		json_object_set_new(json, "parentSpanId", json_string(span->parent));
	if (span->failed)
		json_object_set_new(json, "status", json_pack("{s:i}", "code", STATUS_ERROR));
	return json;
}

char *otlp_encode(const struct span *spans, size_t count, const char *host)
{
	json_t *resource = json_array(), *list = json_array(), *request;
	char *text;

	add_text(resource, "service.name", "convolved");
	add_text(resource, "service.version", PACKAGE_VERSION);
	add_text(resource, "host.name", host);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, describe(&spans[i]));
	request = json_pack("{s:[{s:{s:o}, s:[{s:{s:s}, s:o}]}]}", "resourceSpans", "resource",
	                    "attributes", resource, "scopeSpans", "scope", "name", "convolved",
	                    "spans", list);
	text = json_dumps(request, JSON_COMPACT);
	json_decref(request);
	return text;
}
