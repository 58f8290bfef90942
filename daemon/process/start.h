/* The first steps of a worker's program: what it inherited, whom it tells, its command line. */
#ifndef PROCESS_START_H
#define PROCESS_START_H

#include <getopt.h>
#include <stdnoreturn.h>

#include "base/log.h"

/* Sends HELLO to the front before anything that depends on the version, such as parsing options;
 * sets the process name, which the path that the front executes does not have; and sets how early
 * the kernel kills this process when memory runs out: `expendable`, from 0 to 1000, highest first.
 * Does nothing in a program that the front did not start. */
void announce(const char *name, unsigned expendable);

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

/* Unblocks all signals and restores the default for ignored ones: a parent that ignores SIGCHLD
 * would never learn of a child's end. SIGHUP, SIGINT and SIGQUIT stay ignored if they were: a
 * program started with nohup, or in a shell's background, shall outlive its terminal. */
void signals_reset(void);

#endif
