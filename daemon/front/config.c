/* The configuration. One table of options (options.def) makes the struct, the flags, the keys of
 * the file and the help; a value is text until option_set() has checked it.
 *
 * A reload reads everything again into a second struct, so that an invalid value changes nothing,
 * and then exchanges the live members: whoever reads the one struct sees the new values, and the
 * old ones are freed with the second struct. */
#include "front/config.h"

#include <errno.h>
#include <getopt.h>
#include <glib.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/tile.h"
#include "front/listener.h"

enum option_type {
	OPTION_TEXT,
	OPTION_LIST,
	OPTION_SIZE,
	OPTION_COUNT,
	OPTION_SECONDS,
	OPTION_SHARE,
};

enum option_reload { OPTION_LIVE, OPTION_START };

static const struct option_row {
	const char *name;
	enum option_type type;
	enum option_reload reload;
	size_t offset, size;
	const char *standard;
	uint64_t least, most;
	const char *text;
} options[] = {
#define OPTION(member, name, type, reload, standard, least, most, text)                            \
	{name,                                                                                     \
	 OPTION_##type,                                                                            \
	 OPTION_##reload,                                                                          \
	 offsetof(struct config, member),                                                          \
	 sizeof(CONFIG_##type),                                                                    \
	 standard,                                                                                 \
	 least,                                                                                    \
	 most,                                                                                     \
	 text},
#include "front/options.def"
#undef OPTION
};

enum { OPTIONS = sizeof options / sizeof *options };
enum { FLAG_CONFIG = 1000, FLAG_CHECK, FLAG_PRINT, FLAG_HELP, FLAG_VERSION };

static const char *const kinds[] = {
    [OPTION_TEXT] = "TEXT",   [OPTION_LIST] = "TEXT",       [OPTION_SIZE] = "SIZE",
    [OPTION_COUNT] = "COUNT", [OPTION_SECONDS] = "SECONDS", [OPTION_SHARE] = "SHARE",
};

static const char *const reloads[] = {
    [OPTION_LIVE] = "changed by a reload",
    [OPTION_START] = "changed by a restart",
};

/* Reads a whole number, for sizes with a suffix K, M or G (powers of 1024). */
static bool parse_count(const char *text, bool suffix, uint64_t *number)
{
	static const char suffixes[] = "KMG";
	const char *at;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	if (errno)
		return false;
	at = *end && suffix ? strchr(suffixes, *end) : NULL;
	if (at && !end[1]) {
		unsigned shift = 10 * (unsigned)(at - suffixes + 1);

		end++;
		if (*number > UINT64_MAX >> shift)
			return false;
		*number <<= shift;
	}
	return !*end;
}

static bool parse_share(const char *text, double *share)
{
	char *end;

	if (!*text || text[strspn(text, "0123456789.e-")])
		return false;
	*share = strtod(text, &end);
	return !*end && *share >= 0 && *share <= 1;
}

/* Checks a value and stores it; `where` is the flag or the file and line for the message. */
static bool option_set(struct config *config, const struct option_row *row, const char *value,
                       const char *where)
{
	void *place = (char *)config + row->offset;
	struct config_list *list = place;
	uint64_t number;

	switch (row->type) {
	case OPTION_TEXT:
		free(*(char **)place);
		*(char **)place = strdup(value);
		return true;
	case OPTION_LIST:
		if (list->count < CONFIG_LIST_MAX) {
			list->item[list->count++] = strdup(value);
			return true;
		}
		log_error("%s: %s is given more than %d times", where, row->name, CONFIG_LIST_MAX);
		return false;
	case OPTION_SHARE:
		if (parse_share(value, place))
			return true;
		log_error("%s: %s=%s: valid is a number from 0 to 1", where, row->name, value);
		return false;
	default:
		if (!parse_count(value, row->type == OPTION_SIZE, &number) || number < row->least ||
		    number > row->most) {
			log_error("%s: %s=%s: valid is a whole number%s from %llu to %llu", where,
			          row->name, value,
			          row->type == OPTION_SIZE ? " of bytes (suffix K, M or G)" : "",
			          (unsigned long long)row->least, (unsigned long long)row->most);
			return false;
		}
		*(uint64_t *)place = number;
		return true;
	}
}

static void print_help(void)
{
	printf("Usage: convolved [OPTION...]\n"
	       "Serves image filters over HTTP from the OpenCL devices of this host.\n\n");
	for (int i = 0; i < OPTIONS; i++)
		printf("  --%s %s\n        %s (default: %s; %s)\n", options[i].name,
		       kinds[options[i].type], options[i].text,
		       *options[i].standard ? options[i].standard : "none",
		       reloads[options[i].reload]);
	printf("  --config FILE\n        Configuration: the options above as keys of its group "
	       "[convolved]\n"
	       "  --check-config\n        Check flags and configuration, and exit: 0 if they are "
	       "valid, else 2\n"
	       "  --print-config\n        Print a configuration file with every option at its "
	       "default\n"
	       "  --help\n  --version\n\n"
	       "SIGHUP reloads: flags and file are read again. What a reload does not change is "
	       "named in the log.\n");
}

static void print_sample(void)
{
	printf(
	    "# Configuration of convolved: convolved --config FILE. Every option is here at its "
	    "default.\n"
	    "# Flags of the same names come before this file. SIZE: bytes, with suffix K, M or G.\n"
	    "\n[convolved]\n");
	for (int i = 0; i < OPTIONS; i++)
		printf("\n# %s, %s: %s.\n#%s=%s\n", kinds[options[i].type],
		       reloads[options[i].reload], options[i].text, options[i].name,
		       options[i].standard);
}

/* The flags of the command line; `given` marks the options that appeared. */
static enum config_result parse_flags(struct config *config, int argc, char **argv,
                                      bool given[OPTIONS], const char **file)
{
	struct option flags[OPTIONS + 6] = {{0}};
	char where[64];
	int flag;

	optind = 0; /* from the start, also at a reload */
	for (int i = 0; i < OPTIONS; i++)
		flags[i] = (struct option){options[i].name, required_argument, NULL, i};
	flags[OPTIONS] = (struct option){"config", required_argument, NULL, FLAG_CONFIG};
	flags[OPTIONS + 1] = (struct option){"check-config", no_argument, NULL, FLAG_CHECK};
	flags[OPTIONS + 2] = (struct option){"help", no_argument, NULL, FLAG_HELP};
	flags[OPTIONS + 3] = (struct option){"version", no_argument, NULL, FLAG_VERSION};
	flags[OPTIONS + 4] = (struct option){"print-config", no_argument, NULL, FLAG_PRINT};
	while ((flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
		switch (flag) {
		case FLAG_CONFIG:
			*file = optarg;
			break;
		case FLAG_CHECK:
			config->check_only = true;
			break;
		case FLAG_PRINT:
			print_sample();
			return CONFIG_EXIT;
		case FLAG_HELP:
			print_help();
			return CONFIG_EXIT;
		case FLAG_VERSION:
			puts(PACKAGE_STRING);
			return CONFIG_EXIT;
		case '?':
			log_error("--help lists the options");
			return CONFIG_INVALID;
		default:
			snprintf(where, sizeof where, "--%s", options[flag].name);
			if (!option_set(config, &options[flag], optarg, where))
				return CONFIG_INVALID;
			given[flag] = true;
		}
	}
	if (optind < argc) {
		log_error("%s: not an option; --help lists them", argv[optind]);
		return CONFIG_INVALID;
	}
	return CONFIG_RUN;
}

static const struct option_row *option_find(const char *name)
{
	for (int i = 0; i < OPTIONS; i++)
		if (!strcmp(options[i].name, name))
			return &options[i];
	return NULL;
}

/* The line of a key in the file, for messages; 0 if it is not found. */
static unsigned line_of_key(const char *file, const char *key)
{
	char line[1024];
	unsigned number = 0, found = 0;
	size_t length = strlen(key);
	FILE *f = fopen(file, "re");

	while (f && !found && fgets(line, sizeof line, f)) {
		number++;
		if (!strncmp(line, key, length) && strchr("= \t", line[length]))
			found = number;
	}
	if (f)
		fclose(f);
	return found;
}

static bool apply_key(struct config *config, GKeyFile *keys, const char *file, const char *key,
                      const bool given[OPTIONS])
{
	const struct option_row *row = option_find(key);
	char where[512];
	bool valid = true;
	gchar **values;

	snprintf(where, sizeof where, "%s:%u", file, line_of_key(file, key));
	if (!row) {
		log_error("%s: %s: there is no such option; convolved --help lists them", where,
		          key);
		return false;
	}
	if (given[row - options])
		return true;
	values = row->type == OPTION_LIST
	             ? g_key_file_get_string_list(keys, "convolved", key, NULL, NULL)
	             : NULL;
	if (!values) {
		values = g_new0(gchar *, 2);
		values[0] = g_key_file_get_string(keys, "convolved", key, NULL);
	}
	for (gchar **value = values; valid && *value; value++)
		valid = option_set(config, row, g_strstrip(*value), where);
	g_strfreev(values);
	return valid;
}

static bool parse_file(struct config *config, const char *file, bool given[OPTIONS])
{
	GKeyFile *keys = g_key_file_new();
	GError *error = NULL;
	gchar **groups = NULL, **names = NULL;
	bool valid = false;

	if (!g_key_file_load_from_file(keys, file, G_KEY_FILE_NONE, &error)) {
		log_error("%s: %s", file, error->message);
		goto out;
	}
	groups = g_key_file_get_groups(keys, NULL);
	for (gchar **group = groups; *group; group++)
		if (strcmp(*group, "convolved")) {
			log_error("%s: [%s]: the only group is [convolved]", file, *group);
			goto out;
		}
	names = g_key_file_get_keys(keys, "convolved", NULL, NULL);
	valid = true;
	for (gchar **name = names; valid && name && *name; name++) {
		valid = apply_key(config, keys, file, *name, given);
		if (valid)
			given[option_find(*name) - options] = true;
	}
out:
	g_clear_error(&error);
	g_strfreev(groups);
	g_strfreev(names);
	g_key_file_free(keys);
	return valid;
}

/* The texts that have a form of their own. */
static bool texts_valid(const struct config *config)
{
	if (log_level_parse(config->log_level) < 0) {
		log_error("log-level=%s: valid is error, warning, notice, info or debug",
		          config->log_level);
		return false;
	}
	if (log_format_parse(config->log_format) < 0) {
		log_error("log-format=%s: valid is auto, plain or json", config->log_format);
		return false;
	}
	for (unsigned i = 0; i < config->listen.count; i++) {
		if (listener_valid(config->listen.item[i]))
			continue;
		log_error("listen=%s: valid is ADDRESS:PORT with a numeric address, "
		          "[ADDRESS]:PORT or unix:PATH",
		          config->listen.item[i]);
		return false;
	}
	return true;
}

static uint64_t codecs_for_cores(void)
{
	uint64_t wanted = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) + 1;
	uint64_t most = option_find("codecs")->most;

	return wanted < most ? wanted : most;
}

enum config_result config_load(struct config *config, int argc, char **argv)
{
	bool given[OPTIONS] = {false};
	const char *file = NULL;
	enum config_result result;

	*config = (struct config){0};
	result = parse_flags(config, argc, argv, given, &file);
	if (result != CONFIG_RUN)
		return result;
	if (file && !parse_file(config, file, given))
		return CONFIG_INVALID;
	for (int i = 0; i < OPTIONS; i++)
		if (!given[i] && !option_set(config, &options[i], options[i].standard, "default"))
			return CONFIG_INVALID;
	if (!texts_valid(config))
		return CONFIG_INVALID;
	if (!config->codecs)
		config->codecs = codecs_for_cores();
	return CONFIG_RUN;
}

void config_fini(struct config *config)
{
	for (int i = 0; i < OPTIONS; i++) {
		void *place = (char *)config + options[i].offset;
		struct config_list *list = place;

		if (options[i].type == OPTION_TEXT)
			free(*(char **)place);
		for (unsigned j = 0; options[i].type == OPTION_LIST && j < list->count; j++)
			free(list->item[j]);
	}
}

/* The value of an option as it would stand in the file; cut where it does not fit. */
static void option_print(const struct config *config, const struct option_row *row, char *text,
                         size_t room)
{
	const void *place = (const char *)config + row->offset;
	const struct config_list *list = place;
	size_t used = 0;

	*text = '\0';
	switch (row->type) {
	case OPTION_TEXT:
		snprintf(text, room, "%s", *(char *const *)place);
		return;
	case OPTION_SHARE:
		snprintf(text, room, "%g", *(const double *)place);
		return;
	case OPTION_LIST:
		for (unsigned i = 0; i < list->count && used < room; i++)
			used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ";" : "",
			                         list->item[i]);
		return;
	default:
		snprintf(text, room, "%llu", (unsigned long long)*(const uint64_t *)place);
	}
}

static bool lists_equal(const struct config_list *a, const struct config_list *b)
{
	bool equal = a->count == b->count;

	for (unsigned i = 0; equal && i < a->count; i++)
		equal = !strcmp(a->item[i], b->item[i]);
	return equal;
}

static bool option_equal(const struct config *a, const struct config *b,
                         const struct option_row *row)
{
	const void *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;

	switch (row->type) {
	case OPTION_TEXT:
		return !strcmp(*(char *const *)x, *(char *const *)y);
	case OPTION_LIST:
		return lists_equal(x, y);
	default:
		return !memcmp(x, y, row->size);
	}
}

static void option_exchange(struct config *a, struct config *b, const struct option_row *row)
{
	char *x = (char *)a + row->offset, *y = (char *)b + row->offset;
	char kept[sizeof(struct config_list)];

	memcpy(kept, x, row->size);
	memcpy(x, y, row->size);
	memcpy(y, kept, row->size);
}

/* Takes an option over from the configuration that has been read, or says that it cannot be. */
static void option_reload(struct config *config, struct config *read, const struct option_row *row)
{
	char old[256], new[256];

	if (option_equal(config, read, row))
		return;
	option_print(config, row, old, sizeof old);
	option_print(read, row, new, sizeof new);
	if (row->reload == OPTION_START) {
		log_warning("%s stays %s: a restart makes it %s", row->name, old, new);
		return;
	}
	log_notice("%s: %s -> %s", row->name, old, new);
	option_exchange(config, read, row);
}

bool config_reload(struct config *config, int argc, char **argv)
{
	struct config read;
	bool valid = config_load(&read, argc, argv) == CONFIG_RUN;

	for (int i = 0; valid && i < OPTIONS; i++)
		option_reload(config, &read, &options[i]);
	config_fini(&read);
	return valid;
}
