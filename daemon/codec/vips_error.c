/* libvips collects errors as lines "module: text" in one buffer per process. */
#include "codec/vips_error.h"

#include <vips/vips.h>

#include "codec/library_error.h"

enum error vips_error_take(struct problem *problem, enum error e, const char *who)
{
	char *lines = vips_error_buffer_copy();

	e = library_error_describe(problem, e, who, lines);
	g_free(lines);
	return e;
}
