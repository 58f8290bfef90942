/* Text of others before it is shown, and lists of words for messages. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Appends a word to a list: "a, b". Truncates what does not fit. */
void list_add(char *list, size_t size, const char *word);

/* The bytes of the character at the text's beginning, which is not its end; 0: it is not UTF-8. */
int utf8_length(const unsigned char *text);

/* True for a character that terminals may act on: ASCII's control characters and C1, also as a
 * single byte. */
bool utf8_is_control(const unsigned char *text);

/* Replaces those by '?' for each byte, so that a text is one line and commands no terminal. */
void utf8_flatten(char *text);

#endif
