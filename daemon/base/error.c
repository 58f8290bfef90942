/* Error codes: see error.def. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
	int status;
	const char *slug;
	const char *title;
} errors[ERR_COUNT] = {
#define ERROR(symbol, status, slug, title) {status, slug, title},
#include "base/error.def"
};

static enum error known(enum error e)
{
	return (unsigned)e < ERR_COUNT ? e : ERR_INTERNAL;
}

int error_status(enum error e)
{
	return errors[known(e)].status;
}

const char *error_slug(enum error e)
{
	return errors[known(e)].slug;
}

const char *error_title(enum error e)
{
	return errors[known(e)].title;
}

enum error problem_set_parameter(struct problem *p, enum error e, const char *parameter,
                                 const char *value, const char *format, ...)
{
	va_list args;

	snprintf(p->parameter, sizeof p->parameter, "%s", parameter);
	snprintf(p->value, sizeof p->value, "%s", value);
	va_start(args, format);
	vsnprintf(p->detail, sizeof p->detail, format, args);
	va_end(args);
	return e;
}
