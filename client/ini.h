/* Reads the files of the AWS tools: sections in brackets, lines `key = value`, and below a key
 * without a value indented lines of the same form. A comment is a line that begins with # or ;. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A part of the text. */
struct ini_part {
	const char *at;
	size_t size;
};

enum ini_item {
	INI_END,
	INI_SECTION,  /* `section` is a new one */
	INI_VALUE,    /* a key and its value, which may be empty */
	INI_NESTED,   /* the same, below the key `parent` */
	INI_MALFORMED /* the line is none of these */
};

/* The reader's place, and its latest item: parts of the text, without blanks around them. Begin
 * with {.next = text}. */
struct ini {
	const char *next;
	unsigned line; /* line of the item, from 1 */
	struct ini_part section, parent, key, value;
	size_t indent; /* the last key that is not nested */
};

enum ini_item ini_read(struct ini *ini);

/* Tells whether the part is this text. */
bool ini_is(struct ini_part part, const char *text);
