/* Radiance HDR: refuses two kinds of files that libvips would misread, samples in CIE XYZ and rows
 * in another order. The header consists of lines of text, an empty line, and a last one with the
 * number of rows and columns in one of eight orders (Greg Ward, "The Radiance Picture File
 * Format"). */
#include <string.h>

#include <glib.h>

#include "codec/formats/row.h"

enum { HEAD_MAX = 64 << 10 };

static bool matches(const char *text, const char *pattern)
{
	return g_regex_match_simple(pattern, text, G_REGEX_RAW | G_REGEX_MULTILINE, 0);
}

static enum error check(const struct body *body, struct problem *problem)
{
	const size_t most = body->size < HEAD_MAX ? body->size : HEAD_MAX;
	char *head = g_strndup((const char *)body->at, most);
	char *order = strstr(head, "\n\n"), *end = order ? strchr(order + 2, '\n') : NULL;
	enum error e = ERR_OK;

	if (end) {
		*order = *end = '\0';
		order += 2;
	}
	if (matches(head, "^FORMAT=(?!32-bit_rle_rgbe)"))
		e = problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                "the Radiance file's samples are not RGB "
		                "(FORMAT=32-bit_rle_rgbe), the only ones supported");
	else if (!end)
		e = problem_set(problem, ERR_UNDECODABLE,
		                "the Radiance file's header does not end within %d bytes",
		                HEAD_MAX);
	else if (!matches(order, "\\A[+-][XY] [0-9]+ *[+-][XY] [0-9]+ *\\z"))
		e = problem_set(problem, ERR_UNDECODABLE,
		                "the Radiance file's header does not end with its size "
		                "(-Y HEIGHT +X WIDTH)");
	else if (!matches(order, "\\A-Y [0-9]+ *\\+X "))
		e = problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                "the Radiance file's rows do not run from top to bottom and left "
		                "to right (-Y HEIGHT +X WIDTH), the only order supported");
	g_free(head);
	return e;
}

const struct reader hdr_reader = {.check = check};
