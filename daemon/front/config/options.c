/* Options: a row for each option, from options.def, and a row for each type of value; and the texts
 * that are made from the rows. */
#include "front/config/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "image/formats.h"
#include "link/address.h"
#include "wire/network.h"
#include "wire/tile.h"

#define SECTION(name, text)
#define OPTION(member, name, type, reload, default_, min, max, text)                               \
	{name,                                                                                     \
	 OPTION_##type,                                                                            \
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

/* Numbers the sections: SECTION_name is the index of the section's first option, because
 * SECTION_BEFORE_name sets the counter back by one. */
enum section_start {
#define SECTION(name, text)                                          SECTION_##name, SECTION_BEFORE_##name = SECTION_##name - 1,
#define OPTION(member, name, type, reload, default_, min, max, text) SECTION_HOLDS_##member,
#include "front/config/options.def"
#undef SECTION
#undef OPTION
};

static const struct section {
	const char *name, *about;
	enum section_start first;
} sections[] = {
#define SECTION(name, text) {#name, text, SECTION_##name},
#define OPTION(member, name, type, reload, default_, min, max, text)
#include "front/config/options.def"
#undef SECTION
#undef OPTION
};

enum { SECTIONS = sizeof sections / sizeof *sections };

/* Parses an unsigned integer; *suffix is the rest of the text, which the caller checks. */
static bool parse_digits(const char *text, int base, uint64_t *number, const char **suffix)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, base);
	*suffix = end;
	return !errno;
}

static bool parse_count(const char *text, uint64_t *number)
{
	const char *rest;

	return parse_digits(text, 10, number, &rest) && !*rest;
}

static bool parse_mode(const char *text, uint64_t *number)
{
	const char *rest;

	return parse_digits(text, 8, number, &rest) && !*rest;
}

static const char suffixes[] = "KMG"; /* powers of 1024 */

static bool parse_size(const char *text, uint64_t *number)
{
	const char *rest, *at;
	unsigned shift;

	if (!parse_digits(text, 10, number, &rest))
		return false;
	if (!*rest)
		return true;
	at = strchr(suffixes, *rest);
	shift = at ? 10 * (unsigned)(at - suffixes + 1) : 0;
	if (!at || rest[1] || *number > UINT64_MAX >> shift)
		return false;
	*number <<= shift;
	return true;
}

static bool parse_switch(const char *text, uint64_t *number)
{
	*number = !strcmp(text, "yes");
	return *number || !strcmp(text, "no");
}

static bool is_level(const char *text)
{
	return log_level_parse(text) >= 0;
}

static bool is_format(const char *text)
{
	return log_format_parse(text) >= 0;
}

static void print_count(uint64_t number, char *text, size_t room)
{
	snprintf(text, room, "%" PRIu64, number);
}

static void print_size(uint64_t number, char *text, size_t room)
{
	int power = 0;

	for (; number && number % 1024 == 0 && power < 3; power++)
		number /= 1024;
	snprintf(text, room, "%" PRIu64 "%.*s", number, power > 0,
	         suffixes + (power ? power - 1 : 0));
}

static void print_mode(uint64_t number, char *text, size_t room)
{
	snprintf(text, room, "%04" PRIo64, number);
}

static void print_switch(uint64_t number, char *text, size_t room)
{
	snprintf(text, room, "%s", number ? "yes" : "no");
}

/* Accepts SCHEME://HOST or SCHEME://HOST:PORT as browsers send it (RFC 6454), or a *. */
static bool is_origin(const char *text)
{
	const char *host = strstr(text, "://");

	return !strcmp(text, "*") ||
	       (host && host > text && host[3] && !strpbrk(host + 3, "/ ,?#"));
}

/* Accepts names of formats.def; formats that cannot be forbidden need not be named. */
static bool is_file_format(const char *text)
{
	return !strcmp(text, "all") || format_parse(text);
}

/* Accepts the address of a service, or nothing. */
static bool is_url(const char *text)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
		if (!strncmp(text, schemes[i], strlen(schemes[i])))
			return text[strlen(schemes[i])];
	return !*text;
}

/* Accepts a part of paths and a server's name in a balancer's configuration, or nothing. */
static bool is_name(const char *text)
{
	static const char valid[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	return strlen(text) <= CONFIG_NAME_MAX && !text[strspn(text, valid)];
}

/* Types of values: their storage, parsing and printing. `fits`, if not NULL, checks a text or an
 * item of a list; `parse` and the row's bounds check a number. */
static const struct type {
	const char *kind;
	enum { KEEPS_TEXT, KEEPS_LIST, KEEPS_NUMBER, KEEPS_SHARE } keeps;
	bool (*fits)(const char *text);
	bool (*parse)(const char *text, uint64_t *number);
	void (*print)(uint64_t number, char *text, size_t room);
	const char *valid;
	bool bounded; /* describe() adds the row's bounds */
} types[] = {
    [OPTION_TEXT] = {"TEXT", KEEPS_TEXT, NULL, NULL, NULL, "a text", false},
    [OPTION_LIST] = {"LIST", KEEPS_LIST, NULL, NULL, NULL, "texts", false},
    [OPTION_SIZE] = {"SIZE", KEEPS_NUMBER, NULL, parse_size, print_size,
                     "an integer number of bytes (suffix K, M or G)", true},
    [OPTION_COUNT] = {"COUNT", KEEPS_NUMBER, NULL, parse_count, print_count, "an integer", true},
    [OPTION_SECONDS] = {"SECONDS", KEEPS_NUMBER, NULL, parse_count, print_count,
                        "an integer number of seconds", true},
    [OPTION_SHARE] = {"SHARE", KEEPS_SHARE, NULL, NULL, NULL, "a number from 0 to 1", false},
    [OPTION_SWITCH] = {"SWITCH", KEEPS_NUMBER, NULL, parse_switch, print_switch, "yes or no",
                       false},
    [OPTION_MODE] = {"MODE", KEEPS_NUMBER, NULL, parse_mode, print_mode,
                     "file permissions in octal,", true},
    [OPTION_LEVEL] = {"LEVEL", KEEPS_TEXT, is_level, NULL, NULL,
                      "error, warning, notice, info or debug", false},
    [OPTION_FORMAT] = {"FORMAT", KEEPS_TEXT, is_format, NULL, NULL, "auto, plain or json", false},
    [OPTION_NETWORKS] = {"LIST", KEEPS_LIST, network_valid, NULL, NULL,
                         "ADDRESS, ADDRESS/BITS or (all clients of Unix sockets) unix", false},
    [OPTION_ORIGINS] = {"LIST", KEEPS_LIST, is_origin, NULL, NULL,
                        "SCHEME://HOST or SCHEME://HOST:PORT without a path, or *", false},
    [OPTION_FORMATS] = {"LIST", KEEPS_LIST, is_file_format, NULL, NULL,
                        "all, or names of formats as in /v1/filters", false},
    [OPTION_URL] = {"URL", KEEPS_TEXT, is_url, NULL, NULL, "a URL (http://… or https://…)", false},
    [OPTION_NAME] = {"NAME", KEEPS_TEXT, is_name, NULL, NULL,
                     "a name of at most 63 letters, digits, ., - and _", false},
    [OPTION_ADDRESSES] = {"LIST", KEEPS_LIST, address_valid, NULL, NULL,
                          "ADDRESS:PORT with a numeric address, "
                          "[ADDRESS]:PORT (either with tls: before it for TLS) or unix:PATH",
                          false},
};

static const struct type *type_of(const struct option_row *row)
{
	return &types[row->type];
}

const struct option_row *option_find(const char *name)
{
	for (int i = 0; i < OPTIONS; i++)
		if (!strcmp(options[i].name, name))
			return &options[i];
	return NULL;
}

const char *option_section(const struct option_row *row, const char **about, bool *first)
{
	int i = SECTIONS - 1;

	while (i > 0 && (ptrdiff_t)sections[i].first > row - options)
		i--;
	if (about)
		*about = sections[i].about;
	if (first)
		*first = (ptrdiff_t)sections[i].first == row - options;
	return sections[i].name;
}

/* Describes the valid values. */
static void describe(const struct option_row *row, char *text, size_t room)
{
	const struct type *type = type_of(row);
	char min[32], max[32];

	if (type->keeps == KEEPS_LIST) {
		snprintf(text, room, "up to %d, with ; between them, of %s", CONFIG_LIST_MAX,
		         type->valid);
		return;
	}
	if (!type->bounded) {
		snprintf(text, room, "%s", type->valid);
		return;
	}
	type->print(row->min, min, sizeof min);
	type->print(row->max, max, sizeof max);
	snprintf(text, room, "%s from %s to %s", type->valid, min, max);
}

static void list_clear(struct config_list *list)
{
	while (list->count)
		free(list->item[--list->count]);
}

/* Appends the items of a text, without surrounding spaces; skips empty items. */
static bool parse_list(const char *text, bool (*fits)(const char *), struct config_list *list)
{
	for (const char *at = text; *at; at += *at == ';') {
		size_t length;

		at += strspn(at, " \t");
		length = strcspn(at, ";");
		text = at;
		at += length;
		while (length && strchr(" \t", text[length - 1]))
			length--;
		if (!length)
			continue;
		if (list->count == CONFIG_LIST_MAX)
			return false;
		list->item[list->count++] = strndup(text, length);
		if (fits && !fits(list->item[list->count - 1]))
			return false;
	}
	return true;
}

/* Parses a value. The caller must discard() it, even on failure. */
static bool parse(const struct option_row *row, const char *text, union option_value *value)
{
	const struct type *type = type_of(row);
	char *end;

	*value = (union option_value){0};
	switch (type->keeps) {
	case KEEPS_TEXT:
		value->text = strdup(text);
		return !type->fits || type->fits(text);
	case KEEPS_LIST:
		return parse_list(text, type->fits, &value->list);
	case KEEPS_SHARE:
		if (!*text || text[strspn(text, "0123456789.e-")])
			return false;
		value->share = strtod(text, &end);
		return !*end && value->share >= 0 && value->share <= 1;
	case KEEPS_NUMBER:
		return type->parse(text, &value->number) && value->number >= row->min &&
		       value->number <= row->max;
	}
	return false;
}

static void discard(const struct option_row *row, union option_value *value)
{
	if (type_of(row)->keeps == KEEPS_TEXT)
		free(value->text);
	else if (type_of(row)->keeps == KEEPS_LIST)
		list_clear(&value->list);
}

/* As parse(), but on failure discards the value and logs what is expected. */
static bool read_value(const struct option_row *row, const char *text, const char *where,
                       union option_value *value)
{
	char valid[256];

	if (parse(row, text, value))
		return true;
	discard(row, value);
	describe(row, valid, sizeof valid);
	log_error("%s: %s=%s: expected %s", where, row->name, text, valid);
	return false;
}

bool option_check(const struct option_row *row, const char *text, const char *where)
{
	union option_value value;
	bool valid = read_value(row, text, where, &value);

	if (valid)
		discard(row, &value);
	return valid;
}

bool option_set(struct config *config, const struct option_row *row, const char *text,
                const char *where)
{
	void *place = (char *)config + row->offset;
	struct config_list *list = place;
	union option_value value;

	if (!read_value(row, text, where, &value))
		return false;
	if (type_of(row)->keeps != KEEPS_LIST) {
		option_clear(config, row);
		memcpy(place, &value, row->size);
		return true;
	}
	if (list->count + value.list.count > CONFIG_LIST_MAX) {
		log_error("%s: %s has more than %d items", where, row->name, CONFIG_LIST_MAX);
		discard(row, &value);
		return false;
	}
	memcpy(list->item + list->count, value.list.item, value.list.count * sizeof *list->item);
	list->count += value.list.count;
	return true;
}

void option_clear(struct config *config, const struct option_row *row)
{
	void *place = (char *)config + row->offset;

	if (type_of(row)->keeps == KEEPS_LIST)
		list_clear(place);
	else if (type_of(row)->keeps == KEEPS_TEXT)
		free(*(char **)place);
	memset(place, 0, row->size);
}

void option_print(const struct config *config, const struct option_row *row, char *text,
                  size_t room)
{
	const void *place = (const char *)config + row->offset;
	const struct config_list *list = place;

	*text = '\0';
	switch (type_of(row)->keeps) {
	case KEEPS_TEXT:
		snprintf(text, room, "%s", *(char *const *)place);
		return;
	case KEEPS_SHARE:
		snprintf(text, room, "%g", *(const double *)place);
		return;
	case KEEPS_LIST:
		for (unsigned i = 0; i < list->count; i++) {
			const size_t used = strlen(text);

			snprintf(text + used, room - used, "%s%s", i ? ";" : "", list->item[i]);
		}
		return;
	case KEEPS_NUMBER:
		type_of(row)->print(*(const uint64_t *)place, text, room);
		return;
	}
}

bool option_equal(const struct config *a, const struct config *b, const struct option_row *row)
{
	const void *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;
	const struct config_list *list = x, *other = y;
	unsigned i = 0;

	switch (type_of(row)->keeps) {
	case KEEPS_TEXT:
		return !strcmp(*(char *const *)x, *(char *const *)y);
	case KEEPS_LIST:
		while (i < list->count && i < other->count &&
		       !strcmp(list->item[i], other->item[i]))
			i++;
		return i == list->count && i == other->count;
	case KEEPS_NUMBER:
	case KEEPS_SHARE:
		break;
	}
	return !memcmp(x, y, row->size);
}

/* ---- help, sample file, manual ---- */

/* Facts that are printed about an option, besides its description. */
struct facts {
	char valid[256];
	const char *default_, *reload;
	const char *section, *about;
	bool first; /* the section's first option */
};

static struct facts facts_of(const struct option_row *row)
{
	static const char *const reloads[] = {
	    [OPTION_LIVE] = "changed by a reload",
	    [OPTION_START] = "changed by a restart",
	};
	struct facts f = {.reload = reloads[row->reload],
	                  .default_ = *row->default_ ? row->default_ : "none"};

	describe(row, f.valid, sizeof f.valid);
	f.section = option_section(row, &f.about, &f.first);
	return f;
}

void options_print_help(const struct option_flag *flags)
{
	printf("Usage: convolved [OPTION...]\n"
	       "Serves image filters over HTTP from the OpenCL devices of this host.\n");
	for (int i = 0; i < OPTIONS; i++) {
		struct facts f = facts_of(&options[i]);

		if (f.first)
			printf("\n%s, [%s]:\n", f.about, f.section);
		printf("  --%s %s\n        %s (%s; default: %s; %s)\n", options[i].name,
		       type_of(&options[i])->kind, options[i].text, f.valid, f.default_, f.reload);
	}
	puts("\nOther flags:");
	for (; flags->name; flags++)
		printf("  --%s\n        %s\n", flags->name, flags->text);
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
	for (int i = 0; i < OPTIONS; i++) {
		struct facts f = facts_of(&options[i]);

		if (f.first)
			printf("\n# %s.\n[%s]\n", f.about, f.section);
		printf("\n# %s.\n# Valid: %s. Default: %s; %s.\n#%s=%s\n", options[i].text, f.valid,
		       f.default_, f.reload, options[i].name, options[i].default_);
	}
}

/* Prints a text with roff's special characters escaped. */
static void print_roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
	}
}

void options_print_manual(void)
{
	puts(".SH OPTIONS");
	for (int i = 0; i < OPTIONS; i++) {
		struct facts f = facts_of(&options[i]);

		if (f.first)
			printf(".SS [%s]\n%s.\n", f.section, f.about);
		fputs(".TP\n.BI ", stdout);
		print_roff(options[i].name);
		printf("= %s\n", type_of(&options[i])->kind);
		print_roff(options[i].text);
		fputs(".\nValid: ", stdout);
		print_roff(f.valid);
		fputs(".\nDefault: ", stdout);
		print_roff(f.default_);
		printf("; %s.\n", f.reload);
	}
}
