/* Texts of elements. */
#include "client/xml.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct xml_part xml_find(struct xml_part part, const char *element)
{
	size_t length = strlen(element);
	const char *const end = part.at ? part.at + part.size : NULL;
	const char *at = part.at;

	while (at && (at = memmem(at, (size_t)(end - at), element, length))) {
		const char *inside = at + length + 1, *close = inside;

		if (at > part.at && at[-1] == '<' && inside <= end && inside[-1] == '>') {
			while ((close = memmem(close, (size_t)(end - close), element, length)) &&
			       (strncmp(close - 2, "</", 2) != 0 || close[length] != '>'))
				close++;
			return close ? (struct xml_part){inside, (size_t)(close - 2 - inside)}
			             : (struct xml_part){0};
		}
		at++;
	}
	return (struct xml_part){0};
}

/* Reads the number of an entity such as &#xd; after its #. Returns the end, or NULL. */
static const char *read_number(const char *at, unsigned long *number)
{
	bool hex = *at == 'x';
	char *end;

	if (!isxdigit((unsigned char)at[hex]))
		return NULL;
	*number = strtoul(at + hex, &end, hex ? 16 : 10);
	return *end == ';' && *number && *number < 0x110000 ? end + 1 : NULL;
}

static void put_utf8(FILE *text, unsigned long c)
{
	if (c < 0x80) {
		fputc((int)c, text);
	} else if (c < 0x800) {
		fprintf(text, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 0x3f)));
	} else {
		if (c < 0x10000)
			fputc((int)(0xe0 | c >> 12), text);
		else
			fprintf(text, "%c%c", (int)(0xf0 | c >> 18),
			        (int)(0x80 | (c >> 12 & 0x3f)));
		fprintf(text, "%c%c", (int)(0x80 | (c >> 6 & 0x3f)), (int)(0x80 | (c & 0x3f)));
	}
}

/* Writes the character at the beginning of a text, or the one that its entity means. Returns what
 * follows. */
static const char *put_next(FILE *text, const char *at)
{
	static const struct {
		const char *name;
		char c;
	} entities[] = {
	    {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
	unsigned long number;
	const char *end = !strncmp(at, "&#", 2) ? read_number(at + 2, &number) : NULL;

	if (end) {
		put_utf8(text, number);
		return end;
	}
	for (size_t i = 0; *at == '&' && i < sizeof entities / sizeof *entities; i++)
		if (!strncmp(at, entities[i].name, strlen(entities[i].name))) {
			fputc(entities[i].c, text);
			return at + strlen(entities[i].name);
		}
	fputc(*at, text);
	return at + 1;
}

char *xml_copy(struct xml_part part)
{
	char *text = NULL;
	size_t size;
	FILE *copy = open_memstream(&text, &size);

	if (!copy)
		abort();
	/* A part ends before a <, and no entity has one. */
	for (const char *at = part.at; at && at < part.at + part.size;)
		at = put_next(copy, at);
	if (fclose(copy))
		abort();
	return text;
}

void xml_text(const char *xml, const char *element, char *text, size_t size)
{
	struct xml_part whole = {xml, xml ? strlen(xml) : 0};
	char *copy = xml_copy(xml_find(whole, element));

	snprintf(text, size, "%s", copy);
	free(copy);
}
