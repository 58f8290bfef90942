/* The formats of the codec workers: see repertoire.h. All workers are one program on one machine,
 * so the last report holds for all. */
#include "front/workers/repertoire.h"

#include <string.h>

#include "front/config/config.h"

static struct format_sets offered;
static uint32_t allowed;

void repertoire_init(void)
{
	struct format_sets known = format_sets_known();

	allowed = FORMATS_ALWAYS;
	for (unsigned i = 0; i < config->formats.count; i++) {
		const char *name = config->formats.item[i];

		allowed |= strcmp(name, "all") ? 1u << format_parse(name) : known.read;
	}
	repertoire_take(&known);
}

void repertoire_take(const struct format_sets *told)
{
	struct format_sets known = format_sets_known();
	uint32_t always = FORMATS_ALWAYS;

	offered.read = (told->read & allowed & known.read) | always;
	offered.written = (told->written & allowed & known.written) | always;
}

struct format_sets repertoire(void)
{
	return offered;
}

uint32_t repertoire_allowed(void)
{
	return allowed;
}
