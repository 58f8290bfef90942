/* The command line of convolve. Options that are not in the table are parameters of the service,
 * which alone knows and checks them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The exit statuses. A signal ends the process as that signal. */
enum exit_code { EXIT_DONE, EXIT_SOME_FAILED, EXIT_USAGE, EXIT_UNREACHABLE };

struct parameter {
	char *name;
	const char *value;
};

struct texts {
	const char **list;
	size_t count;
};

struct options {
/* clang-format off */
#define OPTION_FLAG bool
#define OPTION_TEXT const char *
#define OPTION_COUNT unsigned
#define OPTION_SECONDS double
#define OPTION_TEXTS struct texts
#define OPTION(letter, member, name, type, min, max, argument, text) OPTION_##type member;
#include "client/options.def"
#undef OPTION
	/* clang-format on */

	const char *command;   /* the first operand: a command, a filter, a chain or @PRESET */
	const char **operands; /* the other operands */
	size_t operand_count;
	struct parameter *parameters; /* parameters of the service, in the order given */
	size_t parameter_count;
};

/* Parses the command line, and takes defaults from the environment; the result points into both.
 * Returns EXIT_DONE, or EXIT_USAGE after printing the error. */
enum exit_code options_parse(struct options *options, int argc, char **argv);
void options_fini(struct options *options);

/* Returns a parameter's value, or NULL if it was not given. */
const char *options_parameter(const struct options *options, const char *name);

void options_print_help(void);
