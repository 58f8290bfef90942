/* What the command lines of workers' programs have in common. */
#ifndef COMMON_USAGE_H
#define COMMON_USAGE_H

#include <getopt.h>
#include <stdnoreturn.h>

#include "common/log.h"

/* A program's name, and what --help prints. */
struct usage {
	const char *program, *help;
};

/* The last rows of a program's options. */
#define USAGE_OPTIONS                                                                              \
	{"log-level", required_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'},             \
	    {"version", no_argument, NULL, 'V'},                                                   \
	{                                                                                          \
		0                                                                                  \
	}

/* Does what getopt_long() has found, c, if it is one of USAGE_OPTIONS: sets *level, or prints and
 * exits. Anything else is an error. */
void usage_option(const struct usage *usage, int c, char *const *argv, enum log_level *level);

/* When getopt_long() has ended: nothing may be left. */
void usage_end(const struct usage *usage, int argc, char *const *argv);

/* Says what is wrong with this value, and exits. */
noreturn void usage_error(const struct usage *usage, const char *what, const char *value);

#endif
