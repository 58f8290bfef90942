/* The table of options (options.def), and their values as text: read, checked and written. */
#ifndef FRONT_CONFIG_OPTIONS_H
#define FRONT_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "front/config/config.h"

enum option_index {
#define SECTION(name, text)
#define OPTION(member, name, type, reload, default_, min, max, text) OPTION_OF_##member,
#include "front/config/options.def"
#undef SECTION
#undef OPTION
	OPTIONS
};

enum option_type {
	OPTION_TEXT,
	OPTION_LIST,
	OPTION_SIZE,
	OPTION_COUNT,
	OPTION_SECONDS,
	OPTION_SHARE,
	OPTION_SWITCH,
	OPTION_MODE,
	OPTION_LEVEL,
	OPTION_FORMAT,
	OPTION_ADDRESSES,
};

enum option_reload { OPTION_LIVE, OPTION_START };

struct option_row {
	const char *name;
	enum option_type type;
	enum option_reload reload;
	size_t offset, size; /* of its member of struct config */
	const char *default_;
	uint64_t min, max;
	const char *text;
};

extern const struct option_row options[OPTIONS];

/* A value outside a configuration. */
union option_value {
	char *text;
	struct config_list list;
	uint64_t number;
	double share;
};

/* The row of this name, or NULL. */
const struct option_row *option_find(const char *name);

/* The section of an option and what it is about; *first: it is the section's first. */
const char *option_section(const struct option_row *row, const char **about, bool *first);
bool option_section_known(const char *name);

/* Puts a value into a configuration; into a list, at its end. `where` names the flag, the variable,
 * or file and line. False: it is not valid, the log says what is, and nothing has changed. */
bool option_set(struct config *config, const struct option_row *row, const char *value,
                const char *where) MUST_CHECK;

/* True if option_set() would take the value; writes to the log as it does. */
bool option_check(const struct option_row *row, const char *value, const char *where) MUST_CHECK;

void option_clear(struct config *config, const struct option_row *row);
bool option_equal(const struct config *a, const struct config *b, const struct option_row *row);

/* The value as it would stand in the file; cut where it does not fit. */
void option_print(const struct config *config, const struct option_row *row, char *text,
                  size_t room);

/* What the help writes for a value; what is valid, in words. */
const char *option_kind(const struct option_row *row);
void option_describe(const struct option_row *row, char *text, size_t room);

#endif
