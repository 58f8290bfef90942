/* Trace Context, level 1 (https://www.w3.org/TR/trace-context/): version-trace_id-parent_id-flags,
 * in lower-case hexadecimal. Later versions are read up to the flags, as it demands. */
#include "front/jobs/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { TRACE_AT = 3, PARENT_AT = 36, FLAGS_AT = 53, LENGTH = 55 };

/* True if the text begins with `length` hexadecimal digits. */
static bool is_hex(const char *text, size_t length)
{
	return strspn(text, "0123456789abcdef") >= length;
}

/* As is_hex(), but false if all are zeros, which is invalid. */
static bool is_id(const char *text, size_t length)
{
	return is_hex(text, length) && strspn(text, "0") < length;
}

bool trace_parse(const char *header, struct trace *trace)
{
	*trace = (struct trace){0};
	if (strlen(header) < LENGTH || !is_hex(header, 2) || !strncmp(header, "ff", 2) ||
	    header[TRACE_AT - 1] != '-' || !is_id(header + TRACE_AT, 32) ||
	    header[PARENT_AT - 1] != '-' || !is_id(header + PARENT_AT, 16) ||
	    header[FLAGS_AT - 1] != '-' || !is_hex(header + FLAGS_AT, 2))
		return false;
	if (header[LENGTH] && (header[LENGTH] != '-' || !strncmp(header, "00", 2)))
		return false;
	memcpy(trace->id, header + TRACE_AT, 32);
	memcpy(trace->parent, header + PARENT_AT, 16);
	trace->sampled = strtoul(header + FLAGS_AT, NULL, 16) & 1;
	return true;
}

/* Returns any number but 0, which is no id; 1 without random numbers, which Linux always has. */
static uint64_t random_number(void)
{
	uint64_t number = 0;

	return getrandom(&number, sizeof number, 0) == sizeof number && number ? number : 1;
}

void trace_new_span(char id[SPAN_ID_SIZE])
{
	snprintf(id, SPAN_ID_SIZE, "%016" PRIx64, random_number());
}

void trace_record(struct trace *trace, double share)
{
	if ((*trace->id && !trace->sampled) || (double)random_number() >= share * 0x1p64)
		return;
	if (!*trace->id)
		snprintf(trace->id, sizeof trace->id, "%016" PRIx64 "%016" PRIx64, random_number(),
		         random_number());
	trace_new_span(trace->span);
}

const char *trace_span(const struct trace *trace)
{
	return *trace->span ? trace->span : trace->parent;
}

const char *trace_exemplar(const struct trace *trace)
{
	return *trace->span ? trace->id : "";
}

const char *trace_text(const struct trace *trace, char text[TRACE_TEXT_SIZE])
{
	text[0] = '\0';
	if (*trace->id)
		snprintf(text, TRACE_TEXT_SIZE, " trace=%s span=%s", trace->id, trace_span(trace));
	return text;
}
