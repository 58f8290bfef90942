/* Foreign text made safe to show, and lists of words for messages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* text_is_nearer() compares so many characters. */
enum { TEXT_NEAR_MAX = 31 };

/* Appends a word to a list: "a, b". Truncates what does not fit. */
void list_add(char *list, size_t size, const char *word);

/* Tells whether a misspelt text may mean this word rather than one that it differs from in *least
 * places, and updates *least; TEXT_NEAR_MAX before the first word. */
bool text_is_nearer(const char *text, const char *word, size_t *least);

/* Returns the bytes of the first character of a text that is not empty; 0 if it is not UTF-8. */
int utf8_length(const unsigned char *text);

/* True for a character that terminals may obey: ASCII's controls and C1, also as a single byte. */
bool utf8_is_control(const unsigned char *text);

/* Replaces such characters' bytes by '?', so that a text is one line and commands no terminal. */
void utf8_flatten(char *text);
