/* Made from the service's tables, so that common parameters need no request. */
#include "client/parameters.h"

#include <string.h>

#include "filters/filters.h"

static const char *const common[] = {
#define COMMON(name, ...) name,
#include "filters/parameters.def"
#undef COMMON
};

bool parameters_know(const char *name)
{
	const struct parameter *p;

	for (size_t i = 0; i < sizeof common / sizeof *common; i++)
		if (!strcmp(common[i], name))
			return true;
	for (enum filter f = 0; f < FILTERS; f++)
		for (size_t i = 0; (p = filter_parameter(f, i)); i++)
			if (!strcmp(p->name, name))
				return true;
	return false;
}
