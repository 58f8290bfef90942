/* Terminals obey C1 controls (U+0080 to U+009F) as well: U+009B is ESC [. */
#include "base/text.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

void list_add(char *list, size_t size, const char *word)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used ? ", " : "", word);
}

/* Levenshtein distance, of the first characters. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[TEXT_NEAR_MAX + 1], n = strnlen(b, TEXT_NEAR_MAX);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; i < TEXT_NEAR_MAX && a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t change = diagonal + (a[i] != b[j]);
			size_t step = 1 + (row[j] < row[j + 1] ? row[j] : row[j + 1]);

			diagonal = row[j + 1];
			row[j + 1] = change < step ? change : step;
		}
	}
	return row[n];
}

bool text_is_nearer(const char *text, const char *word, size_t *least)
{
	const size_t distance = edit_distance(text, word);
	const bool nearer = distance < *least && distance <= (strlen(word) + 1) / 3;

	*least = nearer ? distance : *least;
	return nearer;
}

int utf8_length(const unsigned char *s)
{
	static const struct {
		unsigned char first, last, second_first, second_last;
		int length;
	} forms[] = {
	    {0x01, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
	    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
	    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		int n = 2;

		if (s[0] < forms[i].first || s[0] > forms[i].last || s[1] < forms[i].second_first ||
		    s[1] > forms[i].second_last)
			continue;
		while (n < forms[i].length && (s[n] & 0xc0) == 0x80)
			n++;
		return n < forms[i].length ? 0 : forms[i].length;
	}
	return 0;
}

bool utf8_is_control(const unsigned char *text)
{
	int length = utf8_length(text);

	if (length == 2 && text[0] == 0xc2)
		return text[1] < 0xa0;
	return length < 2 && (text[0] < 0x20 || (text[0] >= 0x7f && text[0] < 0xa0));
}

void utf8_flatten(char *text)
{
	unsigned char *at = (unsigned char *)text;

	while (*at) {
		int length = utf8_length(at);
		bool control = utf8_is_control(at);

		for (length = length ? length : 1; length; length--, at++)
			*at = control ? '?' : *at;
	}
}
