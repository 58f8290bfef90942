/* The table of options (options.def), their values as text (parsing, checking, printing), and texts
 * made from the table: the help, the sample file, the manual. */
#ifndef FRONT_CONFIG_OPTIONS_H
#define FRONT_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
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
	OPTION_NETWORKS,
	OPTION_ORIGINS,
	OPTION_FORMATS,
	OPTION_URL,
	OPTION_NAME,
	OPTION_ADDRESSES,
};

enum option_reload { OPTION_LIVE, OPTION_START };

struct option_row {
	const char *name;
	enum option_type type;
	enum option_reload reload;
	size_t offset, size; /* of its member in struct config, in bytes */
	const char *default_;
	uint64_t min, max;
	const char *text;
};

extern const struct option_row options[OPTIONS];

/* A value of any type; which member holds it follows from the option's type. */
union option_value {
	char *text;
	struct config_list list;
	uint64_t number;
	double share;
};

/* The option of this name, or NULL. */
const struct option_row *option_find(const char *name);

/* The name of an option's section. Unless NULL, *about is set to the section's description, and
 * *first to whether the option is the section's first. */
const char *option_section(const struct option_row *row, const char **about, bool *first);

/* Sets an option from text; appends to a list. `where` names the flag, the variable, or file and
 * line. Returns false if the value is invalid: logs what is expected and changes nothing. */
bool option_set(struct config *config, const struct option_row *row, const char *value,
                const char *where) MUST_CHECK;

/* Returns true if option_set() would accept the value; else logs the same error. */
bool option_check(const struct option_row *row, const char *value, const char *where) MUST_CHECK;

void option_clear(struct config *config, const struct option_row *row);
bool option_equal(const struct config *a, const struct config *b, const struct option_row *row);

/* Prints the value as in the configuration file; truncated to `room` bytes. */
void option_print(const struct config *config, const struct option_row *row, char *text,
                  size_t room);

/* A flag that is not an option: its name, with its argument if it has one, and its description. */
struct option_flag {
	const char *name, *text;
};

/* Prints the help, the sample file, and the manual page's section on options (in roff), to standard
 * output. The array of flags, which the help lists after the options, ends with a NULL name. */
void options_print_help(const struct option_flag *flags);
void options_print_sample(void);
void options_print_manual(void);

#endif
