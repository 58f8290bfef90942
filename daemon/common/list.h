/* Lists of words for messages. */
#ifndef COMMON_LIST_H
#define COMMON_LIST_H

#include <stddef.h>

/* Appends a word to a list: "a, b". Truncates what does not fit. */
void list_add(char *list, size_t size, const char *word);

#endif
