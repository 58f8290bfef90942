/* Radiance HDR: refuses what libvips does not look at, samples in CIE XYZ and rows in another order.
 * The header is lines of text, an empty one, and a last one with the order and number of rows and
 * columns (Greg Ward, "The Radiance Picture File Format"). */
#include <string.h>

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

/* An axis and a length, "-Y 480", with spaces after it: sets `axis`, and moves *i behind it. */
static bool read_axis(const struct line *line, size_t *i, char axis[2])
{
	size_t digits = 0;

	if (line->size - *i < 4 || !memchr("+-", line->at[*i], 2) ||
	    !memchr("XY", line->at[*i + 1], 2) || line->at[*i + 2] != ' ')
		return false;
	memcpy(axis, line->at + *i, 2);
	for (*i += 3; *i < line->size && line->at[*i] >= '0' && line->at[*i] <= '9'; ++*i)
		digits++;
	while (*i < line->size && line->at[*i] == ' ')
		++*i;
	return digits != 0;
}

/* There are eight orders of rows and columns. */
static enum error check_order(const struct line *line, struct problem *problem)
{
	char axes[4];
	size_t i = 0;

	if (!read_axis(line, &i, axes) || !read_axis(line, &i, axes + 2) || i < line->size)
		return problem_set(problem, ERR_UNDECODABLE,
		                   "the Radiance file's header does not end with its size "
		                   "(-Y HEIGHT +X WIDTH)");
	if (!memcmp(axes, "-Y+X", 4))
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
