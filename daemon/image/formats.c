/* Image formats: lookups in formats.def. */
#include "image/formats.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

const struct format_row format_rows[FORMATS] = {
#define FORMAT(symbol, ...) [FORMAT_##symbol] = {__VA_ARGS__},
#include "image/formats.def"
};

_Static_assert(FORMAT_RAW == FORMATS - 1, "lists of formats end with bare pixels");

/* A last one for no format. */
static const struct format_naming names[] = {
#define NAME(format, name, title, media_type)  {FORMAT_##format, name, title, media_type},
#define ALIAS(format, name, title, media_type) {FORMAT_##format, name, title, media_type},
#include "image/formats.def"
    {FORMAT_NONE, "none", "no format", "application/octet-stream"},
};

static const struct format_offer offers[] = {
#define NAME(format, name, title, media_type) {FORMAT_##format, name, title},
#include "image/formats.def"
};

const struct format_naming *format_naming(enum format format)
{
	const struct format_naming *n = names;

	while (n->format && n->format != format)
		n++;
	return n;
}

enum format format_parse(const char *name)
{
	const struct format_naming *n = names;

	while (n->format && strcasecmp(name, n->name))
		n++;
	return n->format;
}

enum format format_parse_media_type(const char *media_type)
{
	const struct format_naming *n = names;

	while (n->format && strcasecmp(media_type, n->media_type))
		n++;
	return n->format;
}

const struct format_offer *format_offer(size_t i)
{
	return i < sizeof offers / sizeof *offers ? &offers[i] : NULL;
}

struct format_sets format_sets_known(void)
{
	struct format_sets known = {0};

	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		known.read |= 1u << f;
#define WRITER(format, row) known.written |= 1u << FORMAT_##format;
#include "image/formats.def"
	return known;
}

void format_list(uint32_t set, char *list, size_t size)
{
	*list = '\0';
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		if (format_in(set, f))
			list_add(list, size, format_naming(f)->name);
}

void format_list_compressions(uint32_t set, char *list, size_t size)
{
	size_t used = 0;

	*list = '\0';
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		if (format_in(set, f) && format_rows[f].compression_text && used < size)
			used += (size_t)snprintf(
			    list + used, size - used, "%s%s for %s", used ? ", and " : "",
			    format_rows[f].compression_text, format_naming(f)->name);
}

const char *const compression_names[COMPRESSIONS] = {
    [COMPRESSION_DEFAULT] = "default",
    [COMPRESSION_NONE] = "none",
    [COMPRESSION_LZW] = "lzw",
    [COMPRESSION_DEFLATE] = "deflate",
    [COMPRESSION_ZSTD] = "zstd",
    [COMPRESSION_LEVEL] = "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
};

bool coding_valid(const struct coding *c)
{
	return c->quality <= 100 && c->lossless <= 1 && c->compression < COMPRESSIONS &&
	       c->subsample < SUBSAMPLES && c->backgrounds <= 3 && c->backgrounds != 2 &&
	       c->background[0] <= 255 && c->background[1] <= 255 && c->background[2] <= 255;
}

enum compression compression_parse(const char *text)
{
	enum compression c = COMPRESSION_NONE;

	while (c < COMPRESSIONS && strcmp(text, compression_names[c]))
		c++;
	return c;
}

bool background_parse(const char *text, struct coding *c)
{
	uint32_t *value = c->background;
	char rest;

	if (strspn(text, "0123456789,") != strlen(text))
		return false;
	c->backgrounds = 3;
	if (sscanf(text, "%4u,%4u,%4u%c", &value[0], &value[1], &value[2], &rest) == 3)
		return coding_valid(c);
	c->backgrounds = 1;
	value[1] = value[2] = 0;
	return sscanf(text, "%4u%c", &value[0], &rest) == 1 && coding_valid(c);
}

const struct loss_row loss_rows[LOSSES] = {
#define LOSS(symbol, token, text) [LOSS_##symbol] = {token, text},
#include "image/losses.def"
};
