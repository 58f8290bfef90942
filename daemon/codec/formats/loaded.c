/* Files that libvips reads once their structure has been checked here.
 *
 * Radiance HDR: refuses two kinds of files that libvips would misread, samples in CIE XYZ and rows
 * in another order. The header consists of lines of text, an empty line, and a last one with the
 * number of rows and columns in one of eight orders (Greg Ward, "The Radiance Picture File
 * Format").
 *
 * GIF: refuses frames whose data has fewer pixels than the frame. libvips's decoder leaves the rest
 * black, and says nothing. It also loses a code that ends with the last byte of the data, if the
 * code for the end is missing ("It must be the last code output by the encoder for an image",
 * GIF89a, appendix F). Here codes are read, but not their colours. */
#include <string.h>

#include <glib.h>

#include "codec/formats/row.h"

enum { HEAD_MAX = 64 << 10, CODE_BITS = 12 };

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

/* The bytes of a frame's sub-blocks, each of which begins with its length; the last has none. */
struct stream {
	const uint8_t *at, *end;
	size_t block;  /* bytes left of a sub-block */
	uint32_t held; /* bits, the next one lowest */
	unsigned bits;
};

static void skip_blocks(struct stream *s)
{
	while (s->at < s->end && *s->at)
		s->at += MIN((size_t)*s->at + 1, (size_t)(s->end - s->at));
	s->at += s->at < s->end;
}

/* Returns the next code if at least one bit more follows, as libvips's decoder does; else -1. */
static int read_code(struct stream *s, unsigned size)
{
	unsigned code;

	while (s->bits <= size) {
		if (!s->block && s->at < s->end)
			s->block = *s->at++;
		if (!s->block || s->at == s->end)
			return -1;
		s->held |= (uint32_t)*s->at++ << s->bits;
		s->bits += 8;
		s->block--;
	}
	code = s->held & ((1u << size) - 1);
	s->held >>= size;
	s->bits -= size;
	return (int)code;
}

/* Tells whether a frame's codes come to its pixels, or to a code that libvips refuses. */
static bool is_complete(struct stream s, uint64_t pixels)
{
	uint16_t lengths[1 << CODE_BITS];
	const unsigned least = *s.at++;
	unsigned clear, size = least + 1, entries = 0, length = 0;
	int code;

	if (least >= CODE_BITS)
		return true;
	for (clear = 1u << least; pixels; pixels -= MIN(pixels, length)) {
		code = read_code(&s, size);
		if (code < 0 || code == (int)clear + 1)
			return false;
		if (code == (int)clear) {
			size = least + 1;
			length = 0;
			continue;
		}
		if (!length) {
			entries = clear + 2;
		} else if (entries < 1 << CODE_BITS) {
			size += entries == (1u << size) - 1 && size < CODE_BITS;
			lengths[entries++] = (uint16_t)(length + 1);
		}
		if (code >= (int)(length ? entries : clear))
			return true;
		length = code < (int)clear ? 1 : lengths[code];
	}
	return true;
}

static size_t table_size(uint8_t flags)
{
	return flags & 0x80 ? (size_t)6 << (flags & 7) : 0;
}

/* Checks the frames that libvips will decode: those before the first one of the part, too. */
static enum error check_gif(struct _VipsImage **, const struct part *part, struct problem *problem)
{
	enum { HEAD = 13, FRAME_HEAD = 10, EXTENSION = 0x21, FRAME = 0x2c };
	struct stream s = {.at = part->body->at, .end = part->body->at + part->body->size};
	size_t head = HEAD;
	uint64_t pixels;

	if (part->body->size > HEAD)
		head += table_size(s.at[10]);
	for (uint32_t frame = 0; part->all || frame <= part->page;) {
		if ((size_t)(s.end - s.at) < head + FRAME_HEAD + 1)
			return ERR_OK;
		s.at += head;
		if (*s.at == EXTENSION) {
			s.at += 2;
			head = 0;
		} else if (*s.at == FRAME) {
			pixels =
			    (s.at[5] | (uint64_t)s.at[6] << 8) * (s.at[7] | (uint64_t)s.at[8] << 8);
			head = FRAME_HEAD + table_size(s.at[9]);
			if ((size_t)(s.end - s.at) <= head)
				return ERR_OK;
			s.at += head;
			if (!is_complete(s, pixels))
				return problem_set(problem, ERR_UNDECODABLE,
				                   "a part of the picture is missing in frame %u",
				                   frame);
			s.at++;
			head = 0;
			frame++;
		} else {
			return ERR_OK;
		}
		skip_blocks(&s);
	}
	return ERR_OK;
}

const struct reader gif_reader = {.load = check_gif};
