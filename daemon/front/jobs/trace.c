/* Trace Context, level 1 (https://www.w3.org/TR/trace-context/): version-trace_id-parent_id-flags,
 * in lower-case hexadecimal. Later versions are read up to the flags, as it demands. */
#include "front/jobs/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* True if all digits are zeros, which is no id. */
static bool is_zero(const char *digits)
{
	return !digits[strspn(digits, "0")];
}

bool trace_parse(const char *header, struct trace *trace)
{
	enum { LENGTH = 55 };
	struct trace t = {0};
	char version[3], flags[3];
	int length = 0;

	*trace = t;
	if (sscanf(header, "%2[0-9a-f]-%32[0-9a-f]-%16[0-9a-f]-%2[0-9a-f]%n", version, t.id,
	           t.parent, flags, &length) != 4 ||
	    length != LENGTH || !strcmp(version, "ff") || is_zero(t.id) || is_zero(t.parent))
		return false;
	if (header[LENGTH] && (header[LENGTH] != '-' || !strcmp(version, "00")))
		return false;
	t.sampled = strtoul(flags, NULL, 16) & 1;
	*trace = t;
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
