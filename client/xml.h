/* Reads object stores' answers in XML: elements without attributes, each of which has a text or
 * others. */
#pragma once

#include <stddef.h>

/* A part of a document; at: NULL if there is none. */
struct xml_part {
	const char *at;
	size_t size;
};

/* Returns what the first element of this name has inside. */
struct xml_part xml_find(struct xml_part part, const char *element);

/* Returns the text of a part, without entities; the caller frees it. */
char *xml_copy(struct xml_part part);

/* Writes the text of an element's first occurrence, cut to `size` bytes with the zero; an empty one
 * if there is none, or no document (NULL). */
void xml_text(const char *xml, const char *element, char *text, size_t size);
