/* The configuration: flags, environment variables and the file, and then others at a reload. A
 * valid one is the same when it is read again, and is exchanged without a loss.
 *
 * The input is lines. One that begins with - is a flag, one that begins with CONVOLVED_ a variable,
 * the others are the file's; after a line of = alone, another configuration begins. */
#include "file.h"
#include "quiet.h"

#ifndef PACKAGE_STRING
#define PACKAGE_STRING "convolved"
#endif
#include "../../daemon/front/config/load.c"

enum { WORDS = 64, INPUT_MAX = 8192 };

/* Returns true if it is valid. Changes the text. */
static bool load(struct config *c, char *text)
{
	static struct memory_file file;
	char *words[WORDS + 1] = {"convolved"}, *variables[WORDS + 1] = {NULL}, *next;
	static char content[INPUT_MAX];
	size_t size = 0;
	int flag_count = 1, variable_count = 0;

	for (char *line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (*line == '-' && flag_count < WORDS - 2)
			words[flag_count++] = line;
		else if (!strncmp(line, prefix, sizeof prefix - 1) && variable_count < WORDS)
			variables[variable_count++] = line;
		else
			size += (size_t)sprintf(content + size, "%s\n", line);
	}
	fill_file(&file, content, size);
	if (size > 1) {
		words[flag_count++] = "--config";
		words[flag_count++] = file.path;
	}
	environ = variables;
	return config_load(c, flag_count, words) == CONFIG_RUN;
}

/* Each value can be written and read again. */
static void check(const struct config *c)
{
	for (const struct option_row *row = options; row < options + OPTIONS; row++) {
		struct config again = {0};
		char *text, *text_again;

		if (!row->type)
			continue;
		text = option_print(c, row);
		must(option_set(&again, row, text, ""));
		text_again = option_print(&again, row);
		must(!strcmp(text, text_again));
		option_clear(&again, row);
		g_free(text);
		g_free(text_again);
	}
}

static void reload(struct config *c, struct config *read)
{
	char *before[2][OPTIONS], *after;

	for (int i = 0; i < OPTIONS; i++) {
		before[0][i] = options[i].type ? option_print(c, &options[i]) : NULL;
		before[1][i] = options[i].type ? option_print(read, &options[i]) : NULL;
	}
	config_exchange(c, read);
	for (int i = 0; i < OPTIONS; i++) {
		after = options[i].type ? option_print(c, &options[i]) : NULL;
		must(!after || !strcmp(after, before[options[i].reload == OPTION_LIVE][i]));
		g_free(after);
		g_free(before[0][i]);
		g_free(before[1][i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct config first, second;
	char **const environment = environ;
	char *text, *reloaded;
	bool valid;

	if (size > INPUT_MAX / 4)
		return 0;
	text = strndup((const char *)input, size); /* to its first zero byte */
	reloaded = strstr(text, "\n=\n");
	if (reloaded) {
		*reloaded = '\0';
		reloaded += 3;
	}
	valid = load(&first, text);
	if (valid)
		check(&first);
	if (reloaded && load(&second, reloaded) && valid)
		reload(&first, &second);
	if (reloaded)
		config_fini(&second);
	config_fini(&first);
	free(text);
	environ = environment;
	return 0;
}

/* --help is for nobody. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	must(freopen("/dev/null", "w", stdout));
	return 0;
}
