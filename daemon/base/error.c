/* Error codes: see error.def. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

static const struct error_row errors[ERR_COUNT] = {
#define ERROR(symbol, status, slug, title) {status, slug, title},
#include "base/error.def"
};

const struct error_row *error_row(enum error e)
{
	return &errors[(unsigned)e < ERR_COUNT ? e : ERR_INTERNAL];
}

enum error problem_set_parameter(struct problem *p, enum error e, const char *parameter,
                                 const char *value, const char *format, ...)
{
	va_list args;

	if (!p)
		return e;
	snprintf(p->parameter, sizeof p->parameter, "%s", parameter);
	snprintf(p->value, sizeof p->value, "%s", value);
	va_start(args, format);
	vsnprintf(p->detail, sizeof p->detail, format, args);
	va_end(args);
	return e;
}
