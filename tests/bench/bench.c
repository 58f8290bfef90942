#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

void *must_have(void *from)
{
	if (!from)
		die("no memory");
	return from;
}

double seconds_now(void)
{
	return (double)now_ns() * 1e-9;
}

unsigned parse_number(char option, const char *text, unsigned max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || !value || value > max)
		die("-%c %s: expected 1 to %u", option, text, max);
	return (unsigned)value;
}
