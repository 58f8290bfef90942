/* The command line: one table for parser and help. */
#include "client/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/value.h"
#include "client/parameters.h"
#include "client/report.h"

enum option_type { FLAG, TEXT, TEXTS, COUNT, SECONDS };

static const struct row {
	char letter;
	const char *name;
	enum option_type type;
	size_t offset;
	double min, max;
	const char *argument, *text;
} rows[] = {
#define OPTION(letter, member, name, type, min, max, argument, text)                               \
	{letter, name, type, offsetof(struct options, member), min, max, argument, text},
#include "client/options.def"
#undef OPTION
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

/* The rest of the command line while it is parsed. */
struct reading {
	struct options *options;
	char **next;
};

static const char usage[] =
    "Usage: convolve FILTER [--PARAMETER VALUE]... [INPUT]... -o OUTPUT\n"
    "       convolve CHAIN [--PARAMETER VALUE]... [INPUT]... -o OUTPUT\n"
    "       convolve @PRESET [--PARAMETER VALUE]... [INPUT]... -o OUTPUT\n"
    "       convolve filters [FILTER] | devices | kernels | top | help\n"
    "       convolve jobs [wait ID... | fetch ID... -o OUTPUT | delete ID...]\n"
    "Filters images through a convolved service.\n"
    "\n"
    "  convolve gaussian --sigma 2 in.jpg -o out.jpg\n"
    "  convolve gaussian=sigma=1.4,sobel --border reflect in.png -o edges.webp\n"
    "  convolve chain --luma gaussian=size=5 --chroma box=size=3 - <in.jpg >out.jpg\n"
    "  convolve @thumb in.jpg -o thumb.jpg\n"
    "  convolve sharpen -j 8 photographs -o sharper/\n"
    "  convolve sharpen --in-place photographs\n"
    "  convolve sharpen -j 64 --files-from list -o s3://bucket/sharper/\n"
    "\n"
    "INPUT is an image (a path, s3://BUCKET/KEY or https://…), - for standard input (the\n"
    "default), or a directory or s3://BUCKET/PREFIX/, whose images are all filtered. OUTPUT is\n"
    "a path or s3://…. Keys of object stores are found as the AWS tools find them. Any option\n"
    "that is not listed here is a parameter of the service: `convolve filters` lists them, and\n"
    "its presets. The suffix of OUTPUT sets the format, unless --format does.\n"
    "\n"
    "In an output directory the file .convolve.jsonl records how each result was made; objects\n"
    "have it in their metadata. Results that exist are skipped if their input and the request\n"
    "are unchanged. With --in-place and --suffix each directory of images has such a file.\n"
    "\n"
    "`convolve jobs` lists asynchronous jobs; it waits for their ends, saves their results or\n"
    "deletes them (an open one is cancelled).\n"
    "\n";

static const char statuses[] =
    "\n"
    "Exit status: 0 success; 1 an image could not be filtered; 2 the command line is\n"
    "invalid, or the service refuses the filter, a parameter or the mask, which ends a batch\n"
    "at once; 3 the service, or an object store, cannot be reached; 130 interrupted.\n";

void options_print_help(void)
{
	fputs(usage, stdout);
	for (const struct row *row = rows; row < rows + ROW_COUNT; row++) {
		char letter[] = "-?,", name[40];

		letter[1] = row->letter;
		snprintf(name, sizeof name, "--%s %s", row->name, row->argument);
		printf("  %-3s %-20s", row->letter ? letter : "", name);
		for (const char *text = row->text; *text;) {
			size_t length = strcspn(text, "\n");

			printf("%.*s\n%*s", (int)length, text, text[length] ? 26 : 0, "");
			text += length + (text[length] == '\n');
		}
	}
	fputs(statuses, stdout);
}

static enum exit_code set(struct options *options, const struct row *row, const char *text)
{
	const struct value_kind kind = {row->type == COUNT ? VALUE_INTEGER : VALUE_NUMBER, row->min,
	                                row->max, NULL};
	void *member = (char *)options + row->offset;
	struct texts *texts;
	char expected[128];
	double number = 0;

	if (row->type >= COUNT && !value_read(&kind, text, &number)) {
		value_describe(&kind, expected, sizeof expected);
		report_error("--%s: expected %s, not %s", row->name, expected, text);
		return EXIT_USAGE;
	}
	switch (row->type) {
	case FLAG:
		*(bool *)member = true;
		break;
	case TEXT:
		*(const char **)member = text;
		break;
	case TEXTS:
		texts = member;
		texts->list = reallocarray(texts->list, texts->count + 1, sizeof *texts->list);
		if (!texts->list)
			abort();
		texts->list[texts->count++] = text;
		break;
	case COUNT:
		*(unsigned *)member = (unsigned)number;
		break;
	case SECONDS:
		*(double *)member = number;
		break;
	}
	return EXIT_DONE;
}

/* Parses a word that starts with two dashes: an option of the client, or else a parameter. */
static enum exit_code read_long(struct reading *r, char *word)
{
	const struct row *row = rows;
	char *value = strchr(word, '=');
	size_t length = value ? (size_t)(value++ - word) : strlen(word);

	while (row < rows + ROW_COUNT &&
	       (strlen(row->name) != length || strncmp(row->name, word, length)))
		row++;
	if (row < rows + ROW_COUNT && row->type == FLAG) {
		if (!value)
			return set(r->options, row, NULL);
		report_error("--%s takes no value", row->name);
		return EXIT_USAGE;
	}
	if (!value && !(value = *r->next++)) {
		if (row < rows + ROW_COUNT || parameters_know(word))
			report_error("--%s needs a value", word);
		else
			report_error("unknown option --%s; see convolve --help", word);
		return EXIT_USAGE;
	}
	if (row < rows + ROW_COUNT)
		return set(r->options, row, value);
	r->options->parameters[r->options->parameter_count++] =
	    (struct parameter){strndup(word, length), value};
	return EXIT_DONE;
}

/* Parses a word of letters after one dash; the last one's value may follow at once. */
static enum exit_code read_short(struct reading *r, const char *word)
{
	for (; *word; word++) {
		const struct row *row = rows;
		const char *value;

		while (row < rows + ROW_COUNT && row->letter != *word)
			row++;
		if (row == rows + ROW_COUNT) {
			report_error("unknown option -%c; see convolve --help", *word);
			return EXIT_USAGE;
		}
		if (row->type == FLAG) {
			set(r->options, row, NULL);
			continue;
		}
		value = word[1] ? word + 1 : *r->next++;
		if (value)
			return set(r->options, row, value);
		report_error("-%c needs a value", *word);
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

static void read_operand(struct options *options, const char *word)
{
	if (options->command)
		options->operands[options->operand_count++] = word;
	else
		options->command = word;
}

static const char *environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

enum exit_code options_parse(struct options *options, int argc, char **argv)
{
	struct reading r = {options, argv + 1};
	bool dashes = true;
	enum exit_code status = EXIT_DONE;

	*options = (struct options){
	    .server = environment("CONVOLVED_URL", "http://127.0.0.1:8700"),
	    .token_file = environment("CONVOLVED_TOKEN_FILE", NULL),
	    .retries = 10,
	    .timeout = 600,
	    .jobs = 4,
	    .interval = 0.5,
	    .operands = calloc((size_t)argc + 1, sizeof *options->operands),
	    .parameters = calloc((size_t)argc + 1, sizeof *options->parameters),
	};
	if (!options->operands || !options->parameters)
		abort();
	while (!status && r.next < argv + argc) {
		char *word = *r.next++;

		if (dashes && !strcmp(word, "--"))
			dashes = false;
		else if (dashes && !strncmp(word, "--", 2))
			status = read_long(&r, word + 2);
		else if (dashes && word[0] == '-' && word[1])
			status = read_short(&r, word + 1);
		else
			read_operand(options, word);
	}
	return status;
}

void options_fini(struct options *options)
{
	for (size_t i = 0; i < options->parameter_count; i++)
		free(options->parameters[i].name);
	free(options->parameters);
	free(options->operands);
	free(options->include.list);
	free(options->exclude.list);
}

const char *options_parameter(const struct options *options, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < options->parameter_count; i++)
		if (!strcmp(options->parameters[i].name, name))
			value = options->parameters[i].value;
	return value;
}
