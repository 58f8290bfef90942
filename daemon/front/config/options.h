/* The table of options (options.def), their values as text (parsing, checking, printing), and texts
 * made from the table: the help, the sample file. */
#ifndef FRONT_CONFIG_OPTIONS_H
#define FRONT_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/value.h"
#include "front/config/config.h"

enum option_index {
#define SECTION(name, text)                                          OPTIONS_OF_##name,
#define OPTION(member, name, type, reload, default_, min, max, text) OPTION_OF_##member,
#include "front/config/options.def"
#undef SECTION
#undef OPTION
	OPTIONS
};

enum option_reload { OPTION_LIVE, OPTION_START };

struct option_type;

/* An option, or (type NULL) a section of the file, whose options are those below it. */
struct option_row {
	const char *name;
	const struct option_type *type;
	enum option_reload reload;
	size_t offset, size; /* of its member in struct config, in bytes */
	const char *default_;
	double min, max;
	const char *text;
};

extern const struct option_row options[OPTIONS];

/* The section of an option. */
const struct option_row *option_section(const struct option_row *row);

/* The option of this name, or NULL. */
const struct option_row *option_find(const char *name);

/* Sets an option from text; appends to a list. `where` names the flag, the variable, or file and
 * line. If the value is invalid, logs what is expected; the option is then to be cleared. */
bool option_set(struct config *config, const struct option_row *row, const char *value,
                const char *where) MUST_CHECK;

void option_clear(struct config *config, const struct option_row *row);

/* The value as in the configuration file; g_free() it. Two values are equal if their texts are. */
char *option_print(const struct config *config, const struct option_row *row);

/* A flag that is not an option. */
struct option_flag {
	const char *name;
	const char *argument; /* " FILE"; "" if it has none */
	const char *text;
};

/* Print the help and the sample file, which the manual page is made from. The array of flags, which
 * the help lists after the options, ends with a NULL name. */
void options_print_help(const struct option_flag *flags);
void options_print_sample(void);

#endif
