/* Lists in headers, with weights. If several elements match, the most specific one counts, wherever
 * it is in the list. */
#include "front/api/accept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { NAME_SIZE = 64 };

/* The closeness of an element to a type, in order of precedence. */
enum fit { FIT_NONE, FIT_ANY, FIT_TYPE, FIT_EXACT };

/* The best match so far. */
struct verdict {
	enum fit fit;
	uint16_t weight;
};

/* Reads the next element of a list, without parameters and spaces, and its weight. Returns the text
 * after the element; reads no further, because a header may be long. NULL after the last. Nothing
 * separates elements within quotes. */
static const char *next_element(const char *at, char name[NAME_SIZE], uint16_t *weight)
{
	bool quoted = false;
	size_t length;

	at += strspn(at, ", \t");
	if (!*at)
		return NULL;
	length = strcspn(at, ",; \t");
	snprintf(name, NAME_SIZE, "%.*s", (int)(length < NAME_SIZE - 1 ? length : NAME_SIZE - 1),
	         at);
	*weight = ACCEPT_MOST;
	for (; *at && (quoted || *at != ','); at++) {
		const char *parameter = at + 1 + strspn(at + 1, " \t");

		if (*at == '"')
			quoted = !quoted;
		else if (quoted && *at == '\\' && at[1])
			at++;
		else if (!quoted && *at == ';' && (*parameter == 'q' || *parameter == 'Q') &&
		         parameter[1] == '=') {
			double q = strtod(parameter + 2, NULL);

			/* NaN becomes 0. */
			*weight = q > 0 ? (uint16_t)(q < 1 ? q * ACCEPT_MOST : ACCEPT_MOST) : 0;
		}
	}
	return at;
}

/* Compares an element with a type; `any` stands for all types, and NULL for no range at all. */
static enum fit fit_of(const char *element, const char *type, const char *any)
{
	const size_t stem = strcspn(type, "/") + 1; /* "image/" */

	if (!strcasecmp(element, type))
		return FIT_EXACT;
	if (any && !strncasecmp(element, type, stem) && !strcmp(element + stem, "*"))
		return FIT_TYPE;
	return any && !strcmp(element, any) ? FIT_ANY : FIT_NONE;
}

static void judge(struct verdict *verdict, enum fit fit, uint16_t weight)
{
	if (fit && (fit > verdict->fit || (fit == verdict->fit && weight > verdict->weight)))
		*verdict = (struct verdict){fit, weight};
}

enum error accept_parse(const char *accept, uint32_t written, uint16_t weights[FORMATS],
                        struct problem *problem)
{
	struct verdict verdicts[FORMATS] = {0};
	char range[NAME_SIZE];
	uint16_t weight;
	char types[256] = "";
	bool any = false;

	if (!accept || !*accept)
		accept = "*/*";
	for (const char *at = accept; (at = next_element(at, range, &weight));) {
		const enum format named = format_parse_media_type(range);

		for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
			judge(&verdicts[f],
			      f == named ? FIT_EXACT
			                 : fit_of(range, format_naming(f)->media_type, "*/*"),
			      weight);
	}
	for (enum format f = FORMAT_NONE; f < FORMATS; f++) {
		weights[f] = format_in(written, f) ? verdicts[f].weight : 0;
		any |= weights[f] > 0;
	}
	if (any)
		return ERR_OK;
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		if (format_in(written, f))
			list_add(types, sizeof types, format_naming(f)->media_type);
	return problem_set_parameter(problem, ERR_NOT_ACCEPTABLE, "Accept", accept,
	                             "expected one of %s (raw pixels)", types);
}

uint16_t accept_weigh(const char *list, const char *name, const char *any)
{
	struct verdict verdict = {0};
	char element[NAME_SIZE];
	uint16_t weight;

	for (const char *at = list ? list : ""; (at = next_element(at, element, &weight));)
		judge(&verdict, fit_of(element, name, any), weight);
	return verdict.weight;
}

bool accept_openmetrics(const char *accept)
{
	uint16_t weight = accept_weigh(accept, "application/openmetrics-text", NULL);

	return weight && weight >= accept_weigh(accept, "text/plain", NULL);
}

bool accept_html(const char *accept)
{
	return accept_weigh(accept, "text/html", "*/*") > accept_weigh(accept, "text/plain", "*/*");
}
