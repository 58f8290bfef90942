/* One line after another. */
#include "client/ini.h"

#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static struct ini_part trim(const char *from, const char *to)
{
	while (from < to && is_blank(*from))
		from++;
	while (to > from && is_blank(to[-1]))
		to--;
	return (struct ini_part){from, (size_t)(to - from)};
}

bool ini_is(struct ini_part part, const char *text)
{
	return part.size == strlen(text) && !memcmp(part.at, text, part.size);
}

static enum ini_item read_section(struct ini *ini, struct ini_part line)
{
	const char *end = memchr(line.at, ']', line.size);

	if (!end)
		return INI_MALFORMED;
	ini->section = trim(line.at + 1, end);
	ini->key = ini->value = ini->parent = (struct ini_part){0};
	return INI_SECTION;
}

/* An indented line belongs to the key before it: it is nested if that key has no value; otherwise
 * it continues the value, which none of the wanted keys has. */
static enum ini_item read_pair(struct ini *ini, struct ini_part line, size_t indent)
{
	const char *equals = memchr(line.at, '=', line.size), *end = line.at + line.size;
	bool below = ini->key.at && indent > ini->indent;
	bool nests = below && (ini->parent.at || !ini->value.size);

	if (below && !nests)
		return INI_END;
	if (!equals || equals == line.at || !ini->section.at)
		return INI_MALFORMED;
	if (nests && !ini->parent.at)
		ini->parent = ini->key;
	if (!nests) {
		ini->parent = (struct ini_part){0};
		ini->indent = indent;
	}
	ini->key = trim(line.at, equals);
	ini->value = trim(equals + 1, end);
	return nests ? INI_NESTED : INI_VALUE;
}

enum ini_item ini_read(struct ini *ini)
{
	while (*ini->next) {
		const char *start = ini->next, *end = start + strcspn(start, "\n");
		struct ini_part line = trim(start, end);
		enum ini_item item;

		ini->next = end + (*end == '\n');
		ini->line++;
		if (!line.size || *line.at == '#' || *line.at == ';')
			continue;
		if (*line.at == '[')
			return read_section(ini, line);
		item = read_pair(ini, line, (size_t)(line.at - start));
		if (item != INI_END)
			return item;
	}
	return INI_END;
}
