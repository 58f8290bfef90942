/* Options: a row for each option, from options.def, and one for each type of value; and the texts
 * that are made from the rows. */
#include "front/config/options.h"

#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "image/formats.h"
#include "link/address.h"
#include "wire/network.h"
#include "wire/tile.h"

/* Accepts names of formats.def; formats that cannot be forbidden need not be named. */
static bool is_file_format(const char *text)
{
	return !strcmp(text, "all") || format_parse(text);
}

struct option_type {
	const char *name; /* in the help */
	enum { KEEPS_TEXT, KEEPS_LIST, KEEPS_INTEGER, KEEPS_NUMBER } keeps;
	/* What a text, or an item of a list, must fit; NULL: all do. */
	bool (*fits)(const char *text);
	const char *pattern;
	const char *valid; /* which fit */
	/* Unless that says it: a number within the row's bounds, or a word. */
	enum value_type value;
	const char *unit;
};

static const struct option_type
    type_TEXT = {"TEXT", KEEPS_TEXT, .valid = "a text"},
    type_LEVEL = {"LEVEL", KEEPS_INTEGER, .value = VALUE_WORD,
                  .unit = "error|warning|notice|info|debug"},
    type_FORMAT = {"FORMAT", KEEPS_INTEGER, .value = VALUE_WORD, .unit = "auto|plain|json"},
    type_MODE = {"MODE", KEEPS_TEXT, .pattern = "^0*[0-7]{1,3}$",
                 .valid = "file permissions in octal, from 0000 to 0777"},
    type_URL = {"URL", KEEPS_TEXT, .pattern = "^(https?://.+)?$",
                .valid = "a URL (http://… or https://…)"},
    type_NAME = {"NAME", KEEPS_TEXT, .pattern = "^[A-Za-z0-9._-]{0,63}$",
                 .valid = "a name of at most 63 letters, digits, ., - and _"},
    type_LIST = {"LIST", KEEPS_LIST, .valid = "texts"},
    type_NETWORKS = {"LIST", KEEPS_LIST, .fits = network_valid,
                     .valid = "ADDRESS, ADDRESS/BITS or (all clients of Unix sockets) unix"},
    type_ORIGINS = {"LIST", KEEPS_LIST, .pattern = "^(\\*|((?!://).)+://[^/ ,?#]+)$",
                    .valid = "SCHEME://HOST or SCHEME://HOST:PORT without a path, or *"},
    type_FORMATS = {"LIST", KEEPS_LIST, .fits = is_file_format,
                    .valid = "all, or names of formats as in /v1/filters"},
    type_ADDRESSES = {"LIST", KEEPS_LIST, .fits = address_valid,
                      .valid = "ADDRESS:PORT with a numeric address, [ADDRESS]:PORT (either with "
                               "tls: before it for TLS) or unix:PATH"},
    type_SIZE = {"SIZE", KEEPS_INTEGER, .value = VALUE_BYTES},
    type_COUNT = {"COUNT", KEEPS_INTEGER, .value = VALUE_INTEGER},
    type_SECONDS = {"SECONDS", KEEPS_INTEGER, .value = VALUE_INTEGER, .unit = "seconds"},
    type_SWITCH = {"SWITCH", KEEPS_INTEGER, .value = VALUE_WORD, .unit = "no|yes"},
    type_SHARE = {"SHARE", KEEPS_NUMBER, .value = VALUE_NUMBER};

_Static_assert(CONFIG_NAME_MAX == 63, "the pattern of NAME says so");

#define SECTION(name, text) {#name, NULL, OPTION_START, 0, 0, NULL, 0, 0, text},
#define OPTION(member, name, type, reload, default_, min, max, text)                               \
	{name,                                                                                     \
	 &type_##type,                                                                             \
	 OPTION_##reload,                                                                          \
	 offsetof(struct config, member),                                                          \
	 sizeof(CONFIG_##type),                                                                    \
	 default_,                                                                                 \
	 min,                                                                                      \
	 max,                                                                                      \
	 text},
const struct option_row options[OPTIONS] = {
#include "front/config/options.def"
};
#undef SECTION
#undef OPTION

const struct option_row *option_section(const struct option_row *row)
{
	while (row->type)
		row--;
	return row;
}

const struct option_row *option_find(const char *name)
{
	for (int i = 0; i < OPTIONS; i++)
		if (options[i].type && !strcmp(options[i].name, name))
			return &options[i];
	return NULL;
}

static struct value_kind kind_of(const struct option_row *row)
{
	return (struct value_kind){row->type->value, row->min, row->max, row->type->unit};
}

/* Describes the valid values. */
static void describe(const struct option_row *row, char *text, size_t room)
{
	const struct value_kind kind = kind_of(row);

	if (row->type->keeps == KEEPS_LIST)
		snprintf(text, room, "up to %d, with ; between them, of %s", CONFIG_LIST_MAX,
		         row->type->valid);
	else if (row->type->valid)
		snprintf(text, room, "%s", row->type->valid);
	else
		value_describe(&kind, text, room);
}

static bool fits(const struct option_type *type, const char *text)
{
	return (!type->fits || type->fits(text)) &&
	       (!type->pattern ||
	        g_regex_match_simple(type->pattern, text, G_REGEX_RAW | G_REGEX_DOLLAR_ENDONLY, 0));
}

/* Appends the items of a text, without surrounding spaces; skips empty items. */
static bool parse_list(const char *text, const struct option_type *type, struct config_list *list)
{
	char **items = g_strsplit(text, ";", -1);
	bool valid = true;

	for (char **item = items; *item && valid; item++) {
		if (!*g_strstrip(*item))
			continue;
		valid = list->count < CONFIG_LIST_MAX && fits(type, *item);
		if (valid)
			list->item[list->count++] = strdup(*item);
	}
	g_strfreev(items);
	return valid;
}

bool option_set(struct config *c, const struct option_row *row, const char *text, const char *where)
{
	const struct option_type *type = row->type;
	const struct value_kind kind = kind_of(row);
	void *place = (char *)c + row->offset;
	char expected[256];
	double number = 0;
	bool valid = false;

	if (type->keeps != KEEPS_LIST)
		option_clear(c, row);
	switch (type->keeps) {
	case KEEPS_TEXT:
		*(char **)place = strdup(text);
		valid = fits(type, text);
		break;
	case KEEPS_LIST:
		valid = parse_list(text, type, place);
		break;
	case KEEPS_INTEGER:
		valid = value_read(&kind, text, &number);
		*(uint64_t *)place = valid ? (uint64_t)number : 0;
		break;
	case KEEPS_NUMBER:
		valid = value_read(&kind, text, place);
		break;
	}
	if (!valid) {
		describe(row, expected, sizeof expected);
		log_error("%s: %s=%s: expected %s", where, row->name, text, expected);
	}
	return valid;
}

void option_clear(struct config *c, const struct option_row *row)
{
	void *place = (char *)c + row->offset;
	struct config_list *list = place;

	if (row->type->keeps == KEEPS_TEXT)
		free(*(char **)place);
	while (row->type->keeps == KEEPS_LIST && list->count)
		free(list->item[--list->count]);
	memset(place, 0, row->size);
}

char *option_print(const struct config *c, const struct option_row *row)
{
	const struct value_kind kind = kind_of(row);
	const void *place = (const char *)c + row->offset;
	char number[32];

	switch (row->type->keeps) {
	case KEEPS_TEXT:
		return g_strdup(*(char *const *)place);
	case KEEPS_LIST:
		return g_strjoinv(";", ((struct config_list *)(uintptr_t)place)->item);
	case KEEPS_INTEGER:
		value_print(&kind, (double)*(const uint64_t *)place, number, sizeof number);
		break;
	case KEEPS_NUMBER:
		value_print(&kind, *(const double *)place, number, sizeof number);
		break;
	}
	return g_strdup(number);
}

/* ---- help, sample file ---- */

/* Facts that are printed about an option, besides its description. */
struct facts {
	char valid[256];
	const char *default_, *reload;
};

static struct facts facts_of(const struct option_row *row)
{
	struct facts f = {.default_ = *row->default_ ? row->default_ : "none",
	                  .reload = row->reload == OPTION_LIVE ? "changed by a reload"
	                                                       : "changed by a restart"};

	describe(row, f.valid, sizeof f.valid);
	return f;
}

void options_print_help(const struct option_flag *flags)
{
	printf("Usage: convolved [OPTION...]\n"
	       "Serves image filters over HTTP from the OpenCL devices of this host.\n");
	for (const struct option_row *row = options; row < options + OPTIONS; row++) {
		struct facts f;

		if (!row->type) {
			printf("\n%s, [%s]:\n", row->text, row->name);
			continue;
		}
		f = facts_of(row);
		printf("  --%s %s\n        %s (%s; default: %s; %s)\n", row->name, row->type->name,
		       row->text, f.valid, f.default_, f.reload);
	}
	puts("\nOther flags:");
	for (; flags->name; flags++)
		printf("  --%s%s\n        %s\n", flags->name, flags->argument, flags->text);
	puts("\nFlags override environment variables (CONVOLVED_MAX_BODY for --max-body), which "
	     "override the file\nand the defaults. SIGHUP reloads: all are read again; the log "
	     "names changes that need a restart.");
}

void options_print_sample(void)
{
	puts(
	    "# Configuration of convolved: convolved --config FILE. Every option is here at its "
	    "default.\n"
	    "# Flags of the same names (--max-body) and environment variables (CONVOLVED_MAX_BODY) "
	    "override this\n"
	    "# file. Lines that begin with # are comments.");
	for (const struct option_row *row = options; row < options + OPTIONS; row++) {
		struct facts f;

		if (!row->type) {
			printf("\n# %s.\n[%s]\n", row->text, row->name);
			continue;
		}
		f = facts_of(row);
		printf("\n# %s.\n# Valid: %s. Default: %s; %s.\n#%s=%s\n", row->text, f.valid,
		       f.default_, f.reload, row->name, row->default_);
	}
}
