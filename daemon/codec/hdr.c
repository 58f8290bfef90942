/* Radiance HDR: refuses what libvips does not look at, samples in CIE XYZ and rows in another
 * order. The header is lines of text, an empty one, and a last one with the order and number of
 * rows and columns (Greg Ward, "The Radiance Picture File Format"). */
#include <string.h>

#include <glib.h>

#include "codec/row.h"

enum { HEAD_MAX = 64 << 10 };

/* The rest of the header, line by line. */
struct lines {
	const char *at, *end;
};

struct line {
	const char *at;
	size_t size;
};

/* False if no line ends before the header may end. */
static bool next_line(struct lines *l, struct line *line)
{
	const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));

	if (!newline)
		return false;
	*line = (struct line){l->at, (size_t)(newline - l->at)};
	l->at = newline + 1;
	return true;
}

static bool begins(const struct line *line, const char *text)
{
	return line->size >= strlen(text) && !memcmp(line->at, text, strlen(text));
}

/* The size is two axes and lengths, "-Y 480 +X 640": there are eight orders of rows and columns. */
static enum error check_order(const struct line *line, struct problem *problem)
{
	char *text = g_strndup(line->at, line->size);
	const bool is_size =
	    g_regex_match_simple("^[+-][XY] [0-9]+ *[+-][XY] [0-9]+ *$", text, G_REGEX_RAW, 0);
	const bool usual = g_regex_match_simple("^-Y [0-9]+ *\\+X ", text, G_REGEX_RAW, 0);

	g_free(text);
	if (!is_size)
		return problem_set(problem, ERR_UNDECODABLE,
		                   "the Radiance file's header does not end with its size "
		                   "(-Y HEIGHT +X WIDTH)");
	if (usual)
		return ERR_OK;
	return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
	                   "the Radiance file's rows do not run from top to bottom and left to "
	                   "right (-Y HEIGHT +X WIDTH), the only order supported");
}

static enum error check(const struct body *body, struct problem *problem)
{
	size_t head = body->size < HEAD_MAX ? body->size : HEAD_MAX;
	struct lines lines = {(const char *)body->at, (const char *)body->at + head};
	struct line line;

	while (next_line(&lines, &line) && line.size)
		if (begins(&line, "FORMAT=") && !begins(&line, "FORMAT=32-bit_rle_rgbe"))
			return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
			                   "the Radiance file's samples are not RGB "
			                   "(FORMAT=32-bit_rle_rgbe), the only ones supported");
	if (!next_line(&lines, &line))
		return problem_set(problem, ERR_UNDECODABLE,
		                   "the Radiance file's header does not end within %d bytes",
		                   HEAD_MAX);
	return check_order(&line, problem);
}

const struct reader hdr_reader = {.check = check};
