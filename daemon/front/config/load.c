/* Loads the configuration from four sources in order of precedence: flags, environment variables,
 * the file, defaults. An option takes its value from the first source that has it; values of later
 * sources are only checked.
 *
 * A reload reads everything into a second struct, so that an invalid value changes nothing, and
 * then swaps the live members: readers of the first struct see the new values, and the old values
 * are freed with the second struct. */
#include "front/config/load.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "front/config/cores.h"
#include "front/config/help.h"
#include "front/config/keyfile.h"
#include "front/config/options.h"
#include "front/config/textfile.h"

enum source { SOURCE_NONE, SOURCE_FLAG, SOURCE_ENVIRONMENT, SOURCE_FILE, SOURCE_DEFAULT };

struct reading {
	struct config *config;
	enum source now, from[OPTIONS];
	const char *file; /* the configuration file, or NULL */
	bool valid;
};

/* Applies a value of the current source, unless an earlier source has given one; then only checks
 * it. */
static void take(struct reading *r, const struct option_row *row, const char *value,
                 const char *where)
{
	enum source *from = &r->from[row - options];

	if (*from && *from != r->now) {
		r->valid &= option_check(row, value, where);
		return;
	}
	*from = r->now;
	r->valid &= option_set(r->config, row, value, where);
}

/* What getopt_long() returns: the first option, above all characters, as ':' and '?' are faults;
 * and the flags that are not options. */
enum {
	FLAG_OPTION = 500,
	FLAG_CONFIG = 1000,
	FLAG_CHECK,
	FLAG_SAMPLE,
	FLAG_MANUAL,
	FLAG_HASH,
	FLAG_HELP,
	FLAG_VERSION
};
enum { FLAGS = FLAG_VERSION - FLAG_CONFIG + 1 };

static const struct help_flag texts[FLAGS + 1] = {
    {"config FILE", "Configuration: a file of sections with the options above as keys"},
    {"check-config", "Check flags, environment, configuration and the files that it names, and "
                     "exit: 0 if they are valid, else 2"},
    {"print-config", "Print a configuration file with every option at its default"},
    {"print-manual-options", "Print the manual's part about the options, in roff"},
    {"hash-token", "Read a token from standard input, and print its line for the file of tokens"},
    {"help", "Print this"},
    {"version", "Print the version"},
    {NULL, NULL},
};

/* Answers a flag that asks for a text. */
static enum config_result answer(int flag)
{
	switch (flag) {
	case FLAG_SAMPLE:
		help_print_sample();
		break;
	case FLAG_MANUAL:
		help_print_manual();
		break;
	case FLAG_HASH:
		return CONFIG_HASH_TOKEN;
	case FLAG_HELP:
		help_print(texts);
		break;
	default:
		puts(PACKAGE_STRING);
	}
	return CONFIG_EXIT;
}

/* Fills getopt_long()'s table. The names of flags that are not options are the first words of
 * `texts`. */
static void list_flags(struct option flags[OPTIONS + FLAGS + 1])
{
	static char names[FLAGS][32];

	memset(flags, 0, (OPTIONS + FLAGS + 1) * sizeof *flags);
	for (int i = 0; i < OPTIONS; i++)
		flags[i] =
		    (struct option){options[i].name, required_argument, NULL, FLAG_OPTION + i};
	for (int i = 0; i < FLAGS; i++) {
		size_t length = strcspn(texts[i].name, " ");

		snprintf(names[i], sizeof names[i], "%.*s", (int)length, texts[i].name);
		flags[OPTIONS + i] = (struct option){
		    names[i], texts[i].name[length] ? required_argument : no_argument, NULL,
		    FLAG_CONFIG + i};
	}
}

/* Logs why getopt_long() rejected the last argument. */
static void complain(int found, char **argv)
{
	const char *word = argv[optind - 1];

	if (found == ':')
		log_error("%s: a value must follow; --help lists the options", word);
	else if (optopt >= FLAG_CONFIG)
		log_error("%s: this flag takes no value; --help lists the options", word);
	else if (optopt)
		log_error("-%c: no such option; --help lists them", optopt);
	else
		log_error("%s: no such option, or a prefix of more than one; --help lists them",
		          word);
}

static enum config_result read_flags(struct reading *r, int argc, char **argv)
{
	struct option flags[OPTIONS + FLAGS + 1];
	char where[64];
	int flag;

	list_flags(flags);
	r->now = SOURCE_FLAG;
	optind = 0; /* from the start, also at a reload */
	opterr = 0;
	while ((flag = getopt_long(argc, argv, ":", flags, NULL)) != -1) {
		if (flag == '?' || flag == ':') {
			complain(flag, argv);
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
			take(r, row, optarg, where);
		}
	}
	for (; optind < argc; optind++) {
		log_error("%s: not an option; --help lists them", argv[optind]);
		r->valid = false;
	}
	return CONFIG_RUN;
}

static const char prefix[] = "CONVOLVED_";

/* Variables with our prefix that other programs use: the client, the tests. */
static bool is_for_others(const char *name)
{
	static const char *const others[] = {"URL", "TOKEN_FILE", "BUILD", "FAULT", "RESTARTS"};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!strncmp(name, others[i], strlen(others[i])))
			return true;
	return false;
}

/* Reads one variable, NAME=VALUE. */
static void read_variable(struct reading *r, const char *variable)
{
	const char *value = strchr(variable, '='), *name = variable + sizeof prefix - 1;
	char option[64], where[96];
	const struct option_row *row;
	size_t i = 0;

	for (; name + i < value && i < sizeof option - 1; i++)
		option[i] = name[i] == '_' ? '-' : (char)tolower((unsigned char)name[i]);
	option[i] = '\0';
	snprintf(where, sizeof where, "%.*s", (int)(value - variable), variable);
	row = option_find(option);
	if (row)
		take(r, row, value + 1, where);
	else if (!strcmp(option, "config"))
		r->file = r->file ? r->file : value + 1;
	else if (!is_for_others(name))
		log_warning("%s: no such option --%s; the variable is ignored", where, option);
}

static void read_environment(struct reading *r)
{
	r->now = SOURCE_ENVIRONMENT;
	for (char **variable = environ; *variable; variable++)
		if (!strncmp(*variable, prefix, sizeof prefix - 1) && strchr(*variable, '='))
			read_variable(r, *variable);
}

static void list_sections(char *text, size_t room)
{
	size_t used = 0;
	bool first;

	for (int i = 0; i < OPTIONS && used < room; i++) {
		const char *name = option_section(&options[i], NULL, &first);

		if (first)
			used += (size_t)snprintf(text + used, room - used, "%s[%s]",
			                         used ? ", " : "", name);
	}
}

static bool see_section(const struct keyfile_entry *entry)
{
	char list[256];

	if (option_section_known(entry->section))
		return true;
	list_sections(list, sizeof list);
	log_error("%s: [%s]: unknown section; expected one of %s", entry->where, entry->section,
	          list);
	return false;
}

static bool see_entry(void *context, const struct keyfile_entry *entry)
{
	struct reading *r = context;
	const struct option_row *row = entry->key ? option_find(entry->key) : NULL;
	const char *section;

	if (!entry->key)
		return see_section(entry);
	if (!row) {
		log_error("%s: %s=%s: no such option; convolved --help lists them", entry->where,
		          entry->key, entry->value);
		return false;
	}
	section = option_section(row, NULL, NULL);
	if (strcmp(section, entry->section)) {
		log_error("%s: %s=%s: %s belongs in section [%s]", entry->where, entry->key,
		          entry->value, entry->key, section);
		return false;
	}
	take(r, row, entry->value, entry->where);
	return true;
}

static void read_file(struct reading *r)
{
	size_t size = 0;
	char *text = textfile_read("config", r->file, false, &size);

	r->now = SOURCE_FILE;
	r->valid &= text && keyfile_read(r->file, text, see_entry, r);
	textfile_free(text, size);
}

static void read_defaults(struct reading *r)
{
	r->now = SOURCE_DEFAULT;
	r->config->listen_is_default = !r->from[OPTION_OF_listen];
	for (int i = 0; i < OPTIONS; i++)
		if (!r->from[i])
			take(r, &options[i], options[i].default_, "default");
}

/* One waits for a device or the front while others use the cores: of small images, three. */
static uint64_t codecs_for_cores(void)
{
	uint64_t wanted = (uint64_t)cores_usable() + 3;
	uint64_t max = options[OPTION_OF_codecs].max;

	return wanted < max ? wanted : max;
}

static uint64_t http_workers_for_cores(void)
{
	enum { CORES_EACH = 4, MOST = 8 };
	uint64_t wanted = (uint64_t)cores_usable() / CORES_EACH;

	return wanted < 1 ? 1 : wanted < MOST ? wanted : MOST;
}

enum config_result config_load(struct config *config, int argc, char **argv)
{
	struct reading r = {.config = config, .valid = true};
	enum config_result result;

	*config = (struct config){0};
	result = read_flags(&r, argc, argv);
	if (result != CONFIG_RUN)
		return result;
	read_environment(&r);
	if (r.file)
		read_file(&r);
	read_defaults(&r);
	if (!config->codecs)
		config->codecs = codecs_for_cores();
	if (!config->http_workers)
		config->http_workers = http_workers_for_cores();
	return r.valid ? CONFIG_RUN : CONFIG_INVALID;
}

void config_fini(struct config *config)
{
	for (int i = 0; i < OPTIONS; i++)
		option_clear(config, &options[i]);
}

static void option_exchange(struct config *a, struct config *b, const struct option_row *row)
{
	char *x = (char *)a + row->offset, *y = (char *)b + row->offset;
	char kept[sizeof(struct config_list)];

	memcpy(kept, x, row->size);
	memcpy(x, y, row->size);
	memcpy(y, kept, row->size);
}

/* Takes over an option's value from the configuration just read, or logs that it needs a
 * restart. */
static void option_reload(struct config *config, struct config *read, const struct option_row *row)
{
	char old[256], new[256];

	if (option_equal(config, read, row))
		return;
	option_print(config, row, old, sizeof old);
	option_print(read, row, new, sizeof new);
	if (row->reload == OPTION_START) {
		log_warning("%s stays %s: a restart changes it to %s", row->name, old, new);
		return;
	}
	log_notice("%s: %s -> %s", row->name, old, new);
	option_exchange(config, read, row);
}

bool config_reload(struct config *config, int argc, char **argv,
                   bool (*fits)(const struct config *read, const struct config *running))
{
	struct config read;
	bool valid = config_load(&read, argc, argv) == CONFIG_RUN && fits(&read, config);

	for (int i = 0; valid && i < OPTIONS; i++)
		option_reload(config, &read, &options[i]);
	config_fini(&read);
	return valid;
}
