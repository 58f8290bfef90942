/* Image formats: lookups in formats.def. */
#include "common/formats.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/list.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct format_row formats[FORMATS] = {
#define FORMAT(symbol, ...) [FORMAT_##symbol] = {__VA_ARGS__},
#include "common/formats.def"
};

_Static_assert(FORMAT_RAW == FORMATS - 1, "lists of formats end with bare pixels");

static const struct {
	enum format format;
	const char *name, *title, *media_type;
} names[] = {
#define NAME(format, name, title, media_type)  {FORMAT_##format, name, title, media_type},
#define ALIAS(format, name, title, media_type) {FORMAT_##format, name, title, media_type},
#include "common/formats.def"
};

static const struct format_offer offers[] = {
#define NAME(format, name, title, media_type) {FORMAT_##format, name, title},
#include "common/formats.def"
};

const struct format_row *format_row(enum format format)
{
	return &formats[format];
}

/* The first name of a format, or COUNT(names). */
static size_t first_name(enum format format)
{
	size_t i = 0;

	while (i < COUNT(names) && names[i].format != format)
		i++;
	return i;
}

const char *format_name(enum format format)
{
	size_t i = first_name(format);

	return i < COUNT(names) ? names[i].name : "none";
}

const char *format_title(enum format format)
{
	size_t i = first_name(format);

	return i < COUNT(names) ? names[i].title : "no format";
}

const char *format_media_type(enum format format)
{
	size_t i = first_name(format);

	return i < COUNT(names) ? names[i].media_type : "application/octet-stream";
}

enum format format_parse(const char *name)
{
	for (size_t i = 0; i < COUNT(names); i++)
		if (!strcasecmp(name, names[i].name))
			return names[i].format;
	return FORMAT_NONE;
}

enum format format_parse_media_type(const char *media_type)
{
	for (size_t i = 0; i < COUNT(names); i++)
		if (!strcasecmp(media_type, names[i].media_type))
			return names[i].format;
	return FORMAT_NONE;
}

const struct format_offer *format_offer(size_t i)
{
	return i < COUNT(offers) ? &offers[i] : NULL;
}

struct format_sets format_sets_known(void)
{
	struct format_sets known = {0};

	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++) {
		known.read |= 1u << f;
		known.written |= formats[f].read_only ? 0 : 1u << f;
	}
	return known;
}

void format_list(uint32_t set, char *list, size_t size)
{
	*list = '\0';
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		if (format_in(set, f))
			list_add(list, size, format_name(f));
}

void format_list_compressions(uint32_t set, char *list, size_t size)
{
	size_t used = 0;

	*list = '\0';
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		if (format_in(set, f) && formats[f].compression_text && used < size)
			used += (size_t)snprintf(list + used, size - used, "%s%s for %s",
			                         used ? ", and " : "", formats[f].compression_text,
			                         format_name(f));
}
