/* Reads object stores' answers in XML: flat documents, whose elements have a text each. */
#pragma once

#include <stddef.h>

/* Writes the text of an element's first occurrence, cut to `size` bytes with the zero; an empty one
 * if there is none, or no document (NULL). */
void xml_text(const char *xml, const char *element, char *text, size_t size);
