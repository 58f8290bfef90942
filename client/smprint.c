#include "client/smprint.h"

#include <stdio.h>
#include <stdlib.h>

char *vsmprint(const char *format, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, format, args) < 0)
		abort();
	return text;
}

char *smprint(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = vsmprint(format, args);
	va_end(args);
	return text;
}
