/* Loads the configuration from four sources in order of precedence: flags, environment variables,
 * the file, defaults. An option takes its value from the first source that has it; values of later
 * sources are only checked.
 *
 * A reload reads everything into a second struct, so that an invalid value changes nothing, and
 * then swaps the live members. */
#include "front/config/load.h"

#include <getopt.h>
#include <glib.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "base/value.h"
#include "front/config/textfile.h"
#include "image/formats.h"
#include "link/address.h"
#include "wire/network.h"
#include "wire/tile.h"

const struct config *config;

/* ---- the table ---- */

/* Accepts names of formats.def; formats that cannot be forbidden need not be named. */
static bool is_file_format(const char *text)
{
	return !strcmp(text, "all") || format_parse(text);
}

struct option_type {
	const char *name; /* in the help */
	enum { KEEPS_TEXT, KEEPS_LIST, KEEPS_INTEGER, KEEPS_NUMBER } keeps;
	/* Accepts a text, or an item of a list; NULL: all are valid. */
	bool (*fits)(const char *text);
	const char *pattern;
	const char *valid; /* describes those that fit */
	/* The expectation of rows without their own: a number within bounds, or a word. */
	enum value_type value;
	const char *unit;
	bool is_named; /* keys of the section are the names of the list's items */
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
    type_PRESETS = {"NAME=CHAIN", KEEPS_LIST, .is_named = true,
                    .pattern = "^[A-Za-z0-9_-]{1,63}=[^\\x01-\\x1f\\x7f]+$",
                    .valid = "NAME=CHAIN, with a NAME of at most 63 letters, digits, - and _"},
    type_SIZE = {"SIZE", KEEPS_INTEGER, .value = VALUE_BYTES},
    type_COUNT = {"COUNT", KEEPS_INTEGER, .value = VALUE_INTEGER},
    type_SECONDS = {"SECONDS", KEEPS_INTEGER, .value = VALUE_INTEGER, .unit = "seconds"},
    type_SWITCH = {"SWITCH", KEEPS_INTEGER, .value = VALUE_WORD, .unit = "no|yes"},
    type_AUTO = {"AUTO", KEEPS_INTEGER, .value = VALUE_WORD, .unit = "no|yes|auto"},
    type_SHARE = {"SHARE", KEEPS_NUMBER, .value = VALUE_NUMBER};

enum option_index {
#define SECTION(name, text)                                          OPTIONS_OF_##name,
#define OPTION(member, name, type, reload, default_, min, max, text) OPTION_OF_##member,
#include "front/config/options.def"
	OPTIONS
};

enum option_reload { OPTION_LIVE, OPTION_START };

/* An option, or (type NULL) a section of the file, whose options are those below it. */
struct option_row {
	const char *name;
	const struct option_type *type;
	enum option_reload reload;
	size_t offset, size; /* its member in struct config, in bytes */
	const char *default_;
	double min, max;
	const char *text;
};

_Static_assert(CONFIG_NAME_MAX == 63, "the pattern of NAME says so");

#define PLACE(member, type) offsetof(struct config, member), sizeof(CONFIG_##type)
#define SECTION(name, text) {#name, NULL, OPTION_START, 0, 0, "", 0, 0, text},
#define OPTION(member, name, type, reload, default_, min, max, text)                               \
	{name, &type_##type, OPTION_##reload, PLACE(member, type), default_, min, max, text},
static const struct option_row options[OPTIONS] = {
#include "front/config/options.def"
};
#undef PLACE

static const struct option_row *option_find(const char *name)
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

/* The separator between the items of a list; chains have semicolons of their own. */
static const char *separator_of(const struct option_type *type)
{
	return type->is_named ? "\n" : ";";
}

static unsigned most_of(const struct option_type *type)
{
	return type->is_named ? CONFIG_PRESETS_MAX : CONFIG_LIST_MAX;
}

static void describe(const struct option_row *row, char *text, size_t room)
{
	const struct value_kind kind = kind_of(row);

	if (row->type->keeps == KEEPS_LIST)
		snprintf(text, room, "up to %u, %s, of %s", most_of(row->type),
		         row->type->is_named ? "each on a line of its own" : "with ; between them",
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

static void option_clear(struct config *c, const struct option_row *row)
{
	void *place = (char *)c + row->offset;
	struct config_list *list = place;

	if (row->type->keeps == KEEPS_TEXT)
		free(*(char **)place);
	while (row->type->keeps == KEEPS_LIST && list->count)
		free(list->item[--list->count]);
	memset(place, 0, row->size);
}

/* Sets an option from text; for a list, appends the items of the text, without surrounding spaces
 * and empty items. If the value is invalid, logs its place and the expectation; the option must
 * then be cleared. */
static bool option_set(struct config *c, const struct option_row *row, const char *text,
                       const char *where)
{
	const struct option_type *type = row->type;
	const struct value_kind kind = kind_of(row);
	void *place = (char *)c + row->offset;
	struct config_list *list = place;
	char expected[256], **items;
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
		items = g_strsplit(text, separator_of(type), -1);
		valid = true;
		for (char **item = items; *item && valid; item++) {
			if (!*g_strstrip(*item))
				continue;
			valid = list->count < most_of(type) && fits(type, *item);
			if (valid)
				list->item[list->count++] = strdup(*item);
		}
		g_strfreev(items);
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

/* Writes the value as in the configuration file. Two values are equal if their texts are. */
static char *option_print(const struct config *c, const struct option_row *row)
{
	const struct value_kind kind = kind_of(row);
	const void *place = (const char *)c + row->offset;
	char number[32];

	switch (row->type->keeps) {
	case KEEPS_TEXT:
		return g_strdup(*(char *const *)place);
	case KEEPS_LIST:
		return g_strjoinv(separator_of(row->type),
		                  ((struct config_list *)(uintptr_t)place)->item);
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

/* Values returned by getopt_long(): the first option's is above all characters, since ':' and '?'
 * are faults; then the flags that are not options. */
enum {
	FLAG_OPTION = 500,
	FLAG_CONFIG = 1000,
	FLAG_CHECK,
	FLAG_SAMPLE,
	FLAG_HASH,
	FLAG_HELP,
	FLAG_VERSION,
	FLAGS_END
};
enum { FLAGS = FLAGS_END - FLAG_CONFIG };

static const struct {
	const char *name;
	const char *argument; /* " FILE"; "" if it has none */
	const char *text;
} flags[FLAGS] = {
    {"config", " FILE", "Configuration: a file of sections with the options above as keys"},
    {"check-config", "",
     "Check flags, environment, configuration and the files that it names, and exit: 0 if they are "
     "valid, else 78"},
    {"print-config", "", "Print a configuration file with every option at its default"},
    {"hash-token", "",
     "Read a token from standard input, and print its line for the file of tokens"},
    {"help", "", "Print this"},
    {"version", "", "Print the version"},
};

/* Prints the table, for the help or (sample) as a file. */
static void print_options(bool sample)
{
	for (const struct option_row *row = options; row < options + OPTIONS; row++) {
		const char *by = row->reload == OPTION_LIVE ? "reload" : "restart";
		const char *standard = *row->default_ ? row->default_ : "none";
		char valid[256];

		if (!row->type) {
			printf(sample ? "\n# %s.\n[%s]\n" : "\n%s, [%s]:\n", row->text, row->name);
			continue;
		}
		describe(row, valid, sizeof valid);
		if (sample)
			printf("\n# %s.\n# Valid: %s. Default: %s; changed by a %s.\n#%s%s%s\n",
			       row->text, valid, standard, by,
			       row->type->is_named ? row->type->name : row->name,
			       row->type->is_named ? "" : "=", row->default_);
		else
			printf("  --%s %s\n        %s (%s; default: %s; changed by a %s)\n",
			       row->name, row->type->name, row->text, valid, standard, by);
	}
}

static enum config_result answer(int flag)
{
	if (flag == FLAG_HASH)
		return CONFIG_HASH_TOKEN;
	if (flag == FLAG_SAMPLE) {
		puts("# Configuration of convolved: convolved --config FILE. Every option is here "
		     "at its default.\n"
		     "# Flags of the same names (--max-body) and environment variables "
		     "(CONVOLVED_MAX_BODY) override this\n"
		     "# file. Lines that begin with # are comments.");
		print_options(true);
	} else if (flag == FLAG_HELP) {
		puts("Usage: convolved [OPTION...]\n"
		     "Serves image filters over HTTP from the OpenCL devices of this host.");
		print_options(false);
		puts("\nOther flags:");
		for (int i = 0; i < FLAGS; i++)
			printf("  --%s%s\n        %s\n", flags[i].name, flags[i].argument,
			       flags[i].text);
		puts("\nFlags override environment variables (CONVOLVED_MAX_BODY for --max-body), "
		     "which override the file\nand the defaults. SIGHUP reloads: all are read "
		     "again; the log names changes that need a restart.");
	} else {
		puts(PACKAGE_STRING);
	}
	return CONFIG_EXIT;
}

/* ---- reading ---- */

enum source { SOURCE_NONE, SOURCE_FLAG, SOURCE_ENVIRONMENT, SOURCE_FILE, SOURCE_DEFAULT };

struct reading {
	struct config *config;
	enum source now, from[OPTIONS];
	const char *file; /* the configuration file, or NULL */
	bool valid;
};

/* Applies a value of the current source, unless an earlier one gave one; then only checks it. */
static bool apply(struct reading *r, const struct option_row *row, const char *value,
                  const char *where)
{
	enum source *from = &r->from[row - options];
	bool is_given = *from && *from != r->now;
	struct config dropped = {0};
	bool valid = option_set(is_given ? &dropped : r->config, row, value, where);

	option_clear(&dropped, row);
	if (!is_given)
		*from = r->now;
	r->valid &= valid;
	return valid;
}

static enum config_result read_flags(struct reading *r, int argc, char **argv)
{
	struct option all[OPTIONS + FLAGS + 1] = {0}, *last = all;
	char where[64];
	int flag;

	for (int i = 0; i < OPTIONS; i++)
		if (options[i].type)
			*last++ = (struct option){options[i].name, required_argument, NULL,
			                          FLAG_OPTION + i};
	for (int i = 0; i < FLAGS; i++)
		*last++ =
		    (struct option){flags[i].name, *flags[i].argument != 0, NULL, FLAG_CONFIG + i};
	r->now = SOURCE_FLAG;
	optind = 0; /* from the start, also at a reload */
	opterr = 0;
	while ((flag = getopt_long(argc, argv, ":", all, NULL)) != -1) {
		if (flag == '?' || flag == ':') {
			const char *word = argv[optind - 1];

			if (flag == ':')
				log_error("%s: a value must follow; --help lists the options",
				          word);
			else if (optopt >= FLAG_CONFIG)
				log_error("%s: this flag takes no value; --help lists the options",
				          word);
			else if (optopt)
				log_error("-%c: no such option; --help lists them", optopt);
			else
				log_error("%s: no such option, or a prefix of more than one; "
				          "--help lists them",
				          word);
			r->valid = false;
		} else if (flag == FLAG_CONFIG) {
			r->file = optarg;
		} else if (flag == FLAG_CHECK) {
			r->config->check_only = true;
		} else if (flag > FLAG_CHECK) {
			return answer(flag);
		} else {
			const struct option_row *row = &options[flag - FLAG_OPTION];

			snprintf(where, sizeof where, "--%s", row->name);
			apply(r, row, optarg, where);
		}
	}
	for (; optind < argc; optind++) {
		log_error("%s: not an option; --help lists them", argv[optind]);
		r->valid = false;
	}
	return CONFIG_RUN;
}

static const char prefix[] = "CONVOLVED_";

/* Reads one variable, NAME=VALUE. The client and the tests use some with our prefix, too. */
static void read_variable(struct reading *r, const char *variable)
{
	const char *value = strchr(variable, '=') + 1;
	char *where = g_strndup(variable, (gsize)(value - 1 - variable));
	const char *name = where + sizeof prefix - 1;
	char *option = g_strdelimit(g_ascii_strdown(name, -1), "_", '-');
	const struct option_row *row = option_find(option);

	if (row)
		apply(r, row, value, where);
	else if (!strcmp(option, "config"))
		r->file = r->file ? r->file : value;
	else if (!g_regex_match_simple("^(URL|TOKEN_FILE|BUILD|FAULT|RESTARTS)", name, G_REGEX_RAW,
	                               0))
		log_warning("%s: no such option --%s; the variable is ignored", where, option);
	g_free(where);
	g_free(option);
}

static bool see_entry(void *context, const struct textfile_entry *entry)
{
	struct reading *r = context;
	const struct option_row *row = entry->key ? option_find(entry->key) : NULL, *section = row;
	char sections[256] = "", name[64], *item;
	bool valid;

	if (entry->key && !strcmp(entry->section, options[OPTIONS_OF_presets].name)) {
		item = g_strconcat(entry->key, "=", entry->value, NULL);
		valid = apply(r, &options[OPTION_OF_presets], item, entry->where);
		g_free(item);
		return valid;
	}
	for (int i = 0; !entry->key && i < OPTIONS; i++) {
		if (options[i].type)
			continue;
		if (!strcmp(options[i].name, entry->section))
			return true;
		snprintf(name, sizeof name, "[%s]", options[i].name);
		list_add(sections, sizeof sections, name);
	}
	while (section && section->type)
		section--;
	if (!entry->key)
		log_error("%s: [%s]: unknown section; expected one of %s", entry->where,
		          entry->section, sections);
	else if (!row)
		log_error("%s: %s=%s: no such option; convolved --help lists them", entry->where,
		          entry->key, entry->value);
	else if (strcmp(section->name, entry->section))
		log_error("%s: %s=%s: %s belongs in section [%s]", entry->where, entry->key,
		          entry->value, entry->key, section->name);
	else
		return apply(r, row, entry->value, entry->where);
	return false;
}

/* ---- cores ---- */

unsigned cores_of_group(const char *root, const char *path)
{
	char *group = g_strdup(path);
	unsigned least = UINT_MAX;

	for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
		unsigned long long quota, period;
		char *limit;
		FILE *file;

		*end = '\0';
		limit = g_strconcat(root, group, "/cpu.max", NULL);
		file = fopen(limit, "re");
		/* The quota and its period, in microseconds; without a limit the quota is "max". */
		if (file && fscanf(file, "%llu %llu", &quota, &period) == 2 && period &&
		    quota / period < least)
			least = MAX((unsigned)(quota / period + (quota % period != 0)), 1);
		if (file)
			fclose(file);
		g_free(limit);
	}
	g_free(group);
	return least;
}

unsigned cores_usable(void)
{
	/* a smaller set is refused by the kernel if there are more than 1024 cores */
	cpu_set_t set[64];
	unsigned allowed = 1, share = UINT_MAX;
	FILE *groups = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX + 8];

	if (!sched_getaffinity(0, sizeof set, set))
		allowed = (unsigned)CPU_COUNT_S(sizeof set, set);
	/* In a container with a name space of its own, "/" is its own group. */
	while (groups && fgets(line, sizeof line, groups)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "0::/", 4))
			share = cores_of_group("/sys/fs/cgroup", line + 3);
	}
	if (groups)
		fclose(groups);
	return MIN(allowed, share);
}

/* ---- loading ---- */

enum config_result config_load(struct config *c, int argc, char **argv)
{
	enum { CODECS_BESIDE = 3, CORES_EACH = 4, HTTP_WORKERS_MOST = 8 };
	const uint64_t codecs_most = (uint64_t)options[OPTION_OF_codecs].max;
	/* The kernel's driver of a GPU shows one to the service. */
	const bool has_gpu = !access("/dev/nvidiactl", F_OK) || !access("/dev/kfd", F_OK) ||
	                     !access("/dev/dri/renderD128", F_OK);
	struct reading r = {.config = c, .valid = true};
	enum config_result result;
	uint64_t cores, help;

	*c = (struct config){0};
	result = read_flags(&r, argc, argv);
	if (result != CONFIG_RUN)
		return result;
	r.now = SOURCE_ENVIRONMENT;
	for (char **variable = environ; *variable; variable++)
		if (!strncmp(*variable, prefix, sizeof prefix - 1) && strchr(*variable, '='))
			read_variable(&r, *variable);
	if (r.file) {
		r.now = SOURCE_FILE;
		r.valid &= textfile_read_keys("config", r.file, false, see_entry, &r);
	}
	r.now = SOURCE_DEFAULT;
	c->listen_is_default = !r.from[OPTION_OF_listen];
	for (int i = 0; i < OPTIONS; i++)
		if (options[i].type && !r.from[i])
			apply(&r, &options[i], options[i].default_, "default");
	cores = cores_usable();
	/* Codec workers wait for a device or the front while others use the cores; with small
	 * images, three of them do. A GPU leaves the cores little but waiting and messages. */
	help = has_gpu ? 2 * cores : cores;
	if (!c->codecs)
		c->codecs = MIN(help + CODECS_BESIDE, codecs_most);
	if (!c->http_workers)
		c->http_workers = CLAMP(help / CORES_EACH, 1, HTTP_WORKERS_MOST);
	return r.valid ? CONFIG_RUN : CONFIG_INVALID;
}

void config_fini(struct config *c)
{
	for (int i = 0; i < OPTIONS; i++)
		if (options[i].type)
			option_clear(c, &options[i]);
}

void config_exchange(struct config *c, struct config *read)
{
	char kept[sizeof(struct config_list)];

	for (const struct option_row *row = options; row < options + OPTIONS; row++) {
		char *x = (char *)c + row->offset, *y = (char *)read + row->offset, *old, *new;

		if (!row->type)
			continue;
		old = option_print(c, row);
		new = option_print(read, row);
		if (strcmp(old, new) && row->reload == OPTION_START) {
			log_warning("%s stays %s: a restart changes it to %s", row->name, old, new);
		} else if (strcmp(old, new)) {
			log_notice("%s: %s -> %s", row->name, old, new);
			memcpy(kept, x, row->size);
			memcpy(x, y, row->size);
			memcpy(y, kept, row->size);
		}
		g_free(old);
		g_free(new);
	}
}
