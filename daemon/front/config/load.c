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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "front/config/options.h"
#include "front/config/textfile.h"

const struct config *config;

enum source { SOURCE_NONE, SOURCE_FLAG, SOURCE_ENVIRONMENT, SOURCE_FILE, SOURCE_DEFAULT };

struct reading {
	struct config *config;
	enum source now, from[OPTIONS];
	const char *file; /* the configuration file, or NULL */
	bool valid;
};

/* Applies a value of the current source, unless an earlier source has given one; then only checks
 * it. */
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

/* Values that getopt_long() returns: the first option, above all characters, as ':' and '?' are
 * faults; and the flags that are not options. */
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

static const struct option_flag texts[FLAGS + 1] = {
    {"config", " FILE", "Configuration: a file of sections with the options above as keys"},
    {"check-config", "",
     "Check flags, environment, configuration and the files that it names, and exit: 0 if they are "
     "valid, else 78"},
    {"print-config", "", "Print a configuration file with every option at its default"},
    {"hash-token", "",
     "Read a token from standard input, and print its line for the file of tokens"},
    {"help", "", "Print this"},
    {"version", "", "Print the version"},
    {NULL, NULL, NULL},
};

/* Answers a flag that asks for a text. */
static enum config_result answer(int flag)
{
	if (flag == FLAG_HASH)
		return CONFIG_HASH_TOKEN;
	if (flag == FLAG_SAMPLE)
		options_print_sample();
	else if (flag == FLAG_HELP)
		options_print_help(texts);
	else
		puts(PACKAGE_STRING);
	return CONFIG_EXIT;
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
	struct option flags[OPTIONS + FLAGS + 1] = {0}, *last = flags;
	char where[64];
	int flag;

	for (int i = 0; i < OPTIONS; i++)
		if (options[i].type)
			*last++ = (struct option){options[i].name, required_argument, NULL,
			                          FLAG_OPTION + i};
	for (int i = 0; i < FLAGS; i++)
		*last++ =
		    (struct option){texts[i].name, *texts[i].argument != 0, NULL, FLAG_CONFIG + i};
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
	const char *value = strchr(variable, '=') + 1;
	char *where = g_strndup(variable, (gsize)(value - 1 - variable));
	const char *name = where + sizeof prefix - 1;
	char *option = g_strdelimit(g_ascii_strdown(name, -1), "_", '-');
	const struct option_row *row = option_find(option);

	if (row)
		apply(r, row, value, where);
	else if (!strcmp(option, "config"))
		r->file = r->file ? r->file : value;
	else if (!is_for_others(name))
		log_warning("%s: no such option --%s; the variable is ignored", where, option);
	g_free(where);
	g_free(option);
}

static bool see_section(const struct textfile_entry *entry)
{
	char list[256] = "", section[64];

	for (int i = 0; i < OPTIONS; i++) {
		if (options[i].type)
			continue;
		if (!strcmp(options[i].name, entry->section))
			return true;
		snprintf(section, sizeof section, "[%s]", options[i].name);
		list_add(list, sizeof list, section);
	}
	log_error("%s: [%s]: unknown section; expected one of %s", entry->where, entry->section,
	          list);
	return false;
}

static bool see_entry(void *context, const struct textfile_entry *entry)
{
	struct reading *r = context;
	const struct option_row *row = entry->key ? option_find(entry->key) : NULL;
	const char *section = row ? option_section(row)->name : NULL;

	if (!entry->key)
		return see_section(entry);
	if (!row)
		log_error("%s: %s=%s: no such option; convolved --help lists them", entry->where,
		          entry->key, entry->value);
	else if (strcmp(section, entry->section))
		log_error("%s: %s=%s: %s belongs in section [%s]", entry->where, entry->key,
		          entry->value, entry->key, section);
	else
		return apply(r, row, entry->value, entry->where);
	return false;
}

/* ---- cores ---- */

/* cpu.max is the quota and its period, in microseconds; without a limit the quota is "max". */
static unsigned cores_of_file(const char *file)
{
	unsigned long long quota, period;
	FILE *f = fopen(file, "re");
	unsigned cores = UINT_MAX;

	if (!f)
		return UINT_MAX;
	if (fscanf(f, "%llu %llu", &quota, &period) == 2 && period && quota / period < UINT_MAX)
		cores = (unsigned)(quota / period + (quota % period ? 1 : 0));
	fclose(f);
	return cores ? cores : 1;
}

unsigned cores_of_group(const char *root, const char *path)
{
	char *group = g_strdup(path);
	unsigned least = UINT_MAX;

	for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
		unsigned cores;
		char *file;

		*end = '\0';
		file = g_strconcat(root, group, "/cpu.max", NULL);
		cores = cores_of_file(file);
		least = MIN(least, cores);
		g_free(file);
	}
	g_free(group);
	return least;
}

/* In a container with a name space of its own, "/" is its own group. */
static unsigned cores_of_own_group(void)
{
	char line[PATH_MAX + 8];
	FILE *f = fopen("/proc/self/cgroup", "re");
	unsigned cores = UINT_MAX;

	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "0::/", 4))
			cores = cores_of_group("/sys/fs/cgroup", line + 3);
	}
	if (f)
		fclose(f);
	return cores;
}

unsigned cores_usable(void)
{
	cpu_set_t set[64]; /* one is too small for the kernel if there are more than 1024 cores */
	unsigned allowed = 1, share = cores_of_own_group();

	if (!sched_getaffinity(0, sizeof set, set))
		allowed = (unsigned)CPU_COUNT_S(sizeof set, set);
	return MIN(allowed, share);
}

/* ---- loading ---- */

static void set_defaults(struct reading *r)
{
	enum { CODECS_BESIDE = 3, CORES_EACH = 4, HTTP_WORKERS_MOST = 8 };
	const uint64_t cores = cores_usable();
	const uint64_t codecs_most = (uint64_t)options[OPTION_OF_codecs].max;
	struct config *c = r->config;

	r->now = SOURCE_DEFAULT;
	c->listen_is_default = !r->from[OPTION_OF_listen];
	for (int i = 0; i < OPTIONS; i++)
		if (options[i].type && !r->from[i])
			apply(r, &options[i], options[i].default_, "default");
	/* Codec workers wait for a device or the front while others use the cores: with small
	 * images, three of them. */
	if (!c->codecs)
		c->codecs = MIN(cores + CODECS_BESIDE, codecs_most);
	if (!c->http_workers)
		c->http_workers = CLAMP(cores / CORES_EACH, 1, HTTP_WORKERS_MOST);
}

enum config_result config_load(struct config *c, int argc, char **argv)
{
	struct reading r = {.config = c, .valid = true};
	enum config_result result;

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
	set_defaults(&r);
	return r.valid ? CONFIG_RUN : CONFIG_INVALID;
}

void config_fini(struct config *c)
{
	for (int i = 0; i < OPTIONS; i++)
		if (options[i].type)
			option_clear(c, &options[i]);
}

/* Exchanges an option's value with the configuration just read, or logs that it needs a restart. */
static void exchange(struct config *c, struct config *read, const struct option_row *row)
{
	char *x = (char *)c + row->offset, *y = (char *)read + row->offset;
	char *old = option_print(c, row), *new = option_print(read, row);
	char kept[sizeof(struct config_list)];

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

void config_exchange(struct config *c, struct config *read)
{
	for (int i = 0; i < OPTIONS; i++)
		if (options[i].type)
			exchange(c, read, &options[i]);
}
