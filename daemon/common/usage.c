#include "common/usage.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

noreturn void usage_error(const struct usage *usage, const char *what, const char *value)
{
	fprintf(stderr, "%s: %s: %s\nTry '%s --help'.\n", usage->program, what, value,
	        usage->program);
	exit(2);
}

static enum log_level parse_level(const struct usage *usage, const char *name)
{
	int level = log_level_parse(name);

	if (level < 0)
		usage_error(usage, "no such log level", name);
	return (enum log_level)level;
}

void usage_option(const struct usage *usage, int c, char *const *argv, enum log_level *level)
{
	switch (c) {
	case 'l':
		*level = parse_level(usage, optarg);
		return;
	case 'h':
		fputs(usage->help, stdout);
		exit(0);
	case 'V':
		printf("%s %s\n", usage->program, PACKAGE_VERSION);
		exit(0);
	default:
		usage_error(usage, "bad option", argv[optind - 1]);
	}
}

void usage_end(const struct usage *usage, int argc, char *const *argv)
{
	if (optind < argc)
		usage_error(usage, "unexpected argument", argv[optind]);
}
