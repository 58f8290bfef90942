/* Values, all as doubles, which hold every integer that an option or a parameter may have. */
#include "base/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char suffixes[] = "KMG"; /* powers of 1024 */

/* Reads a decimal number: strtod() takes others. 5.0 and 5e+1 are integers, as in JSON. */
static bool read_number(const char *text, double *number)
{
	char *end;

	if (!*text || text[strspn(text, "0123456789+-.eE")])
		return false;
	*number = strtod(text, &end);
	return !*end && isfinite(*number);
}

const char *value_word(const char *words, size_t i, size_t *length)
{
	for (; i && *words; i--) {
		words += strcspn(words, "|");
		words += *words == '|';
	}
	*length = strcspn(words, "|");
	return *words ? words : NULL;
}

bool value_read(const struct value_kind *kind, const char *text, double *value)
{
	const size_t digits = strspn(text, "0123456789");
	const char *suffix, *word;
	size_t length;
	bool is_number = false;

	switch (kind->type) {
	case VALUE_WORD:
		for (size_t i = 0; (word = value_word(kind->unit, i, &length)); i++)
			if (strlen(text) == length && !strncmp(word, text, length)) {
				*value = (double)i;
				return true;
			}
		return false;
	case VALUE_BYTES:
		suffix = strchr(suffixes, text[digits]);
		is_number = digits && suffix && (!*suffix || !text[digits + 1]);
		if (is_number)
			*value = ldexp(strtod(text, NULL),
			               *suffix ? 10 * (int)(suffix - suffixes + 1) : 0);
		break;
	case VALUE_INTEGER:
	case VALUE_ODD:
		is_number = read_number(text, value) && *value == floor(*value) &&
		            (kind->type == VALUE_INTEGER || fmod(*value, 2) != 0);
		break;
	case VALUE_NUMBER:
		is_number = read_number(text, value);
		break;
	}
	return is_number && *value >= kind->min && *value <= kind->max;
}

void value_print(const struct value_kind *kind, double value, char *text, size_t size)
{
	const char *word;
	size_t length;
	int power = 0;

	switch (kind->type) {
	case VALUE_WORD:
		word = value_word(kind->unit, (size_t)value, &length);
		snprintf(text, size, "%.*s", (int)length, word ? word : "");
		return;
	case VALUE_BYTES:
		for (; value > 0 && fmod(value, 1024) == 0 && power < 3; power++)
			value /= 1024;
		snprintf(text, size, "%.0f%.*s", value, power > 0,
		         suffixes + (power ? power - 1 : 0));
		return;
	case VALUE_NUMBER:
	case VALUE_INTEGER:
	case VALUE_ODD:
		snprintf(text, size, "%.15g", value);
	}
}

static void describe_words(const char *words, char *text, size_t size)
{
	const char *bar = strchr(words, '|'), *at;
	char word[32];
	size_t length;

	if (bar && !strchr(bar + 1, '|')) {
		snprintf(text, size, "%.*s or %s", (int)(bar - words), words, bar + 1);
		return;
	}
	snprintf(text, size, "one of %.*s", (int)strcspn(words, "|"), words);
	for (size_t i = 1; (at = value_word(words, i, &length)); i++) {
		snprintf(word, sizeof word, "%.*s", (int)length, at);
		list_add(text, size, word);
	}
}

void value_describe(const struct value_kind *kind, char *text, size_t size)
{
	static const char *const nouns[] = {
	    [VALUE_NUMBER] = "a number",
	    [VALUE_INTEGER] = "an integer",
	    [VALUE_ODD] = "an odd integer",
	    [VALUE_BYTES] = "an integer number of bytes (suffix K, M or G)",
	    [VALUE_WORD] = "",
	};
	const char *unit = kind->unit ? kind->unit : "";
	char min[32], max[32];

	if (kind->type == VALUE_WORD) {
		describe_words(kind->unit, text, size);
		return;
	}
	value_print(kind, kind->min, min, sizeof min);
	value_print(kind, kind->max, max, sizeof max);
	snprintf(text, size, "%s from %s to %s%s%s", nouns[kind->type], min, max,
	         *unit ? ", in " : "", unit);
}

enum error value_parse(const struct value_kind *kind, const char *name, const char *text,
                       double *value, struct problem *problem)
{
	char valid[256];

	if (value_read(kind, text, value))
		return ERR_OK;
	value_describe(kind, valid, sizeof valid);
	return bad_parameter(problem, name, text, "%s: expected %s", name, valid);
}
