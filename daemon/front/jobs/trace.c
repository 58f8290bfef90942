/* Trace Context, level 1 (https://www.w3.org/TR/trace-context/): version-trace_id-parent_id-flags,
 * all in lower-case hexadecimal. Of later versions only this beginning is read, as the
 * specification demands. */
#include "front/jobs/trace.h"

#include <stdio.h>
#include <string.h>

enum { TRACE_AT = 3, PARENT_AT = 36, FLAGS_AT = 53, LENGTH = 55 };

/* `length` hexadecimal digits. */
static bool is_hex(const char *text, size_t length)
{
	return strspn(text, "0123456789abcdef") >= length;
}

/* The same, but not all zeros, which is invalid. */
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
	return true;
}

const char *trace_text(const struct trace *trace, char text[TRACE_TEXT_SIZE])
{
	text[0] = '\0';
	if (*trace->id)
		snprintf(text, TRACE_TEXT_SIZE, " trace=%s span=%s", trace->id, trace->parent);
	return text;
}
