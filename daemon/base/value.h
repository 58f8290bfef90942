/* Values as people write them in options and in parameters of requests and filters: their valid
 * range, how to read them, and the message for an invalid text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum value_type {
	VALUE_NUMBER,
	VALUE_INTEGER,
	VALUE_ODD,
	VALUE_BYTES, /* an integer, with K, M or G */
	VALUE_WORD,  /* the value is its index among the words */
};

struct value_kind {
	enum value_type type;
	double min, max; /* not of a word */
	/* VALUE_WORD: the words, separated by '|'; else a unit, NULL or "" if there is none. */
	const char *unit;
};

/* Reads a text. On failure *value may be a number out of range. */
bool value_read(const struct value_kind *kind, const char *text, double *value) MUST_CHECK;

/* Writes a value as value_read() reads it. */
void value_print(const struct value_kind *kind, double value, char *text, size_t size);

/* Writes the valid values in words: "an integer from 1 to 9, in pixels", "one of on, off, auto". */
void value_describe(const struct value_kind *kind, char *text, size_t size);

/* Does the same as value_read(). With ERR_BAD_PARAMETER the problem says what the parameter of this
 * name expects. */
enum error value_parse(const struct value_kind *kind, const char *name, const char *text,
                       double *value, struct problem *problem) MUST_CHECK;

/* Returns the i-th of the words, with its length, or NULL after the last. */
const char *value_word(const char *words, size_t i, size_t *length);
