/* The configuration. One table of options (options.def) makes the struct, the flags, the keys of
 * the file and the help; a value is text until option_set() has checked it. */
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

static const struct option_row {
	const char *name;
	enum option_type type;
	size_t offset;
	const char *standard;
	uint64_t least, most;
	const char *text;
} options[] = {
#define OPTION(member, name, type, standard, least, most, text)                                    \
	{name, OPTION_##type, offsetof(struct config, member), standard, least, most, text},
#include "front/options.def"
#undef OPTION
};

enum { OPTIONS = sizeof options / sizeof *options };
enum { FLAG_CONFIG = 1000, FLAG_CHECK, FLAG_PRINT, FLAG_HELP, FLAG_VERSION };

static const char *const kinds[] = {
    [OPTION_TEXT] = "TEXT",   [OPTION_LIST] = "TEXT",       [OPTION_SIZE] = "SIZE",
    [OPTION_COUNT] = "COUNT", [OPTION_SECONDS] = "SECONDS", [OPTION_SHARE] = "SHARE",
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
		fprintf(stderr, "convolved: %s: %s is given more than %d times\n", where, row->name,
		        CONFIG_LIST_MAX);
		return false;
	case OPTION_SHARE:
		if (parse_share(value, place))
			return true;
		fprintf(stderr, "convolved: %s: %s=%s: valid is a number from 0 to 1\n", where,
		        row->name, value);
		return false;
	default:
		if (!parse_count(value, row->type == OPTION_SIZE, &number) || number < row->least ||
		    number > row->most) {
			fprintf(
			    stderr,
			    "convolved: %s: %s=%s: valid is a whole number%s from %llu to %llu\n",
			    where, row->name, value,
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
		printf("  --%s %s\n        %s (default: %s)\n", options[i].name,
		       kinds[options[i].type], options[i].text,
		       *options[i].standard ? options[i].standard : "none");
	printf("  --config FILE\n        Configuration: the options above as keys of its group "
	       "[convolved]\n"
	       "  --check-config\n        Check flags and configuration, and exit: 0 if they are "
	       "valid, else 2\n"
	       "  --print-config\n        Print a configuration file with every option at its "
	       "default\n"
	       "  --help\n  --version\n");
}

static void print_sample(void)
{
	printf(
	    "# Configuration of convolved: convolved --config FILE. Every option is here at its "
	    "default.\n"
	    "# Flags of the same names come before this file. SIZE: bytes, with suffix K, M or G.\n"
	    "\n[convolved]\n");
	for (int i = 0; i < OPTIONS; i++)
		printf("\n# %s: %s.\n#%s=%s\n", kinds[options[i].type], options[i].text,
		       options[i].name, options[i].standard);
}

/* The flags of the command line; `given` marks the options that appeared. */
static enum config_result parse_flags(struct config *config, int argc, char **argv,
                                      bool given[OPTIONS], const char **file)
{
	struct option flags[OPTIONS + 6] = {{0}};
	char where[64];
	int flag;

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
			fprintf(stderr, "convolved: --help lists the options\n");
			return CONFIG_INVALID;
		default:
			snprintf(where, sizeof where, "--%s", options[flag].name);
			if (!option_set(config, &options[flag], optarg, where))
				return CONFIG_INVALID;
			given[flag] = true;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "convolved: %s: not an option; --help lists them\n", argv[optind]);
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
		fprintf(stderr,
		        "convolved: %s: %s: there is no such option; convolved --help lists them\n",
		        where, key);
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
		fprintf(stderr, "convolved: %s: %s\n", file, error->message);
		goto out;
	}
	groups = g_key_file_get_groups(keys, NULL);
	for (gchar **group = groups; *group; group++)
		if (strcmp(*group, "convolved")) {
			fprintf(stderr, "convolved: %s: [%s]: the only group is [convolved]\n",
			        file, *group);
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
	if (log_level_parse(config->log_level) < 0) {
		fprintf(stderr,
		        "convolved: log-level=%s: valid is error, warning, notice, info or debug\n",
		        config->log_level);
		return CONFIG_INVALID;
	}
	for (unsigned i = 0; i < config->listen.count; i++) {
		if (listener_valid(config->listen.item[i]))
			continue;
		fprintf(stderr,
		        "convolved: listen=%s: valid is ADDRESS:PORT with a numeric address, "
		        "[ADDRESS]:PORT or unix:PATH\n",
		        config->listen.item[i]);
		return CONFIG_INVALID;
	}
	if (!config->codecs)
		config->codecs = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) + 1;
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
