/* Finds the inputs and chooses the places of their results. */
#include "client/inputs.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/interrupt.h"
#include "client/report.h"
#include "common/formats.h"

static const char *suffix_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	return dot && dot > name ? dot + 1 : "";
}

static bool is_directory(const char *path)
{
	struct stat info;

	return !stat(path, &info) && S_ISDIR(info.st_mode);
}

/* The path of a result in the output directory: the input's name there, with the suffix of the
 * format that --format names. */
static char *place_of(const struct inputs *inputs, const char *name, const char *format)
{
	const char *suffix = suffix_of(name);
	size_t stem = format && *suffix ? (size_t)(suffix - 1 - name) : strlen(name);
	char *place = NULL;

	if (asprintf(&place, "%s/%.*s%s%s", inputs->directory, (int)stem, name, format ? "." : "",
	             format ? format : "") < 0)
		abort();
	return place;
}

/* Adds an input. `info` is NULL if stat() failed: opening the input then says why. */
static void add(struct inputs *inputs, const char *input, char *output, const struct stat *info)
{
	if (!(inputs->count & (inputs->count + 1))) /* full: 0, 1, 3, 7 … */
		inputs->tasks =
		    reallocarray(inputs->tasks, 2 * inputs->count + 1, sizeof *inputs->tasks);
	if (!inputs->tasks)
		abort();
	inputs->tasks[inputs->count] =
	    (struct task){strdup(input), output, info ? info->st_size : 0};
	if (!inputs->tasks[inputs->count].input || !output)
		abort();
	if (info)
		guard_add(&inputs->guard, info, inputs->tasks[inputs->count].input);
	inputs->count++;
}

static int by_name(const FTSENT **one, const FTSENT **other)
{
	return strcmp((*one)->fts_name, (*other)->fts_name);
}

/* True if a file's name says that it is an image. */
static bool is_image(const char *name)
{
	enum format format = format_parse(suffix_of(name));

	return *name != '.' && format != FORMAT_NONE && format != FORMAT_RAW;
}

/* Adds one entry of a directory. Hidden files and the results of former runs are left out. */
static void add_entry(struct inputs *inputs, FTS *tree, FTSENT *entry, size_t root,
                      const struct stat *results, const char *format)
{
	const char *name = entry->fts_path + root;
	bool is_results;

	switch (entry->fts_info) {
	case FTS_D:
		is_results = entry->fts_statp->st_dev == results->st_dev &&
		             entry->fts_statp->st_ino == results->st_ino;
		if (entry->fts_level > 0 && (entry->fts_name[0] == '.' || is_results)) {
			inputs->inside |= is_results;
			fts_set(tree, entry, FTS_SKIP);
		}
		break;
	case FTS_F:
		if (is_image(entry->fts_name))
			add(inputs, entry->fts_path,
			    place_of(inputs, name + strspn(name, "/"), format), entry->fts_statp);
		break;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		report_error("%s: %s", entry->fts_path, strerror(entry->fts_errno));
		inputs->failed = true;
		break;
	default:
		break;
	}
}

static void add_directory(struct inputs *inputs, const char *path, const char *format)
{
	char *const roots[] = {(char *)path, NULL};
	FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	struct stat results = {0};

	if (!tree)
		abort();
	if (stat(inputs->directory, &results))
		results = (struct stat){0}; /* it does not exist yet */
	for (FTSENT *entry; !interrupt_number() && (entry = fts_read(tree));)
		add_entry(inputs, tree, entry, strlen(path), &results, format);
	fts_close(tree);
}

static int by_output(const void *one, const void *other)
{
	const struct task *const *a = one, *const *b = other;

	return strcmp((*a)->output, (*b)->output);
}

/* Gets the status of an input or output; "-" means the descriptor `standard`. */
static bool look_at(const char *path, int standard, struct stat *info)
{
	return !(strcmp(path, "-") ? stat(path, info) : fstat(standard, info));
}

/* Checks that no two results have the same place, and none has an input's. */
static enum exit_code check_places(const struct inputs *inputs)
{
	const struct task **sorted = calloc(inputs->count + 1, sizeof *sorted);
	enum exit_code status = EXIT_DONE;
	const char *input;
	struct stat there;

	if (!sorted)
		abort();
	for (size_t i = 0; i < inputs->count; i++)
		sorted[i] = &inputs->tasks[i];
	qsort(sorted, inputs->count, sizeof *sorted, by_output);
	for (size_t i = 0; i < inputs->count && !status; i++) {
		if (i && !strcmp(sorted[i]->output, sorted[i - 1]->output)) {
			report_error("%s and %s would both become %s", sorted[i - 1]->input,
			             sorted[i]->input, sorted[i]->output);
			status = EXIT_USAGE;
		} else if (look_at(sorted[i]->output, STDOUT_FILENO, &there) &&
		           (input = guard_find(&inputs->guard, &there))) {
			report_error("the result of %s would overwrite %s: choose another output",
			             sorted[i]->input, input);
			status = EXIT_USAGE;
		}
	}
	free(sorted);
	return status;
}

/* True if a path that does not exist yet looks like that of a single image. */
static bool is_for_one(const char *place)
{
	return place[strlen(place) - 1] != '/' && access(place, F_OK) &&
	       format_parse(suffix_of(place)) != FORMAT_NONE;
}

/* The output directory that the options name, without slashes at its end; or NULL. */
static enum exit_code find_directory(struct inputs *inputs, const struct options *options)
{
	const char *out = options->output, *directory = options->output_dir;
	bool several = options->operand_count > 1 ||
	               (options->operand_count && is_directory(options->operands[0]));
	size_t length = out ? strlen(out) : 0;

	inputs->several = options->operand_count > 1;
	if (out && directory) {
		report_error("-o and --output-dir mean the same: give one of them");
		return EXIT_USAGE;
	}
	if (!directory && length && (several || out[length - 1] == '/' || is_directory(out)))
		directory = out;
	if (several && directory && directory == out && is_for_one(out)) {
		report_error("several images, but -o %s names one file: end it with a slash to "
		             "make a directory",
		             out);
		return EXIT_USAGE;
	}
	if (several && (!directory || !strcmp(directory, "-"))) {
		report_error("several images need an output directory: -o DIRECTORY/");
		return EXIT_USAGE;
	}
	if (!directory)
		return EXIT_DONE;
	length = strlen(directory);
	while (length > 1 && directory[length - 1] == '/')
		length--;
	inputs->directory = strndup(directory, length);
	if (!inputs->directory)
		abort();
	if (!is_directory(inputs->directory) && !access(inputs->directory, F_OK)) {
		report_error("%s is a file: several results need a directory", inputs->directory);
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

/* Standard input and output take the places that were not named, unless they are a terminal. */
static enum exit_code add_single(struct inputs *inputs, const char *input, const char *output)
{
	struct stat info;

	if (!output && !strcmp(input, "-"))
		output = "-";
	if (!output) {
		report_error("no output: give -o FILE, or -o - for standard output");
		return EXIT_USAGE;
	}
	if ((!strcmp(input, "-") && isatty(STDIN_FILENO)) ||
	    (!strcmp(output, "-") && isatty(STDOUT_FILENO))) {
		report_error("cannot read an image from a terminal, or write one to it; see "
		             "convolve --help");
		return EXIT_USAGE;
	}
	add(inputs, input, strdup(output), look_at(input, STDIN_FILENO, &info) ? &info : NULL);
	return EXIT_DONE;
}

static enum exit_code add_operand(struct inputs *inputs, const char *input, const char *format)
{
	const char *slash = strrchr(input, '/');
	struct stat info;

	if (!strcmp(input, "-")) {
		report_error(
		    "standard input has no file name: give -o FILE instead of a directory");
		return EXIT_USAGE;
	}
	if (is_directory(input)) {
		inputs->several = true;
		add_directory(inputs, input, format);
		return EXIT_DONE;
	}
	add(inputs, input, place_of(inputs, slash ? slash + 1 : input, format),
	    stat(input, &info) ? NULL : &info);
	return EXIT_DONE;
}

static enum exit_code add_all(struct inputs *inputs, const struct options *options)
{
	const char *format = options_parameter(options, "format");
	enum exit_code status = EXIT_DONE;

	if (!inputs->directory)
		return add_single(inputs, options->operand_count ? options->operands[0] : "-",
		                  options->output);
	if (!options->operand_count) {
		report_error("no input: give image files, or a directory");
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < options->operand_count && !status; i++)
		status = add_operand(inputs, options->operands[i], format);
	return status;
}

enum exit_code inputs_find(struct inputs *inputs, const struct options *options)
{
	enum exit_code status;

	*inputs = (struct inputs){0};
	status = find_directory(inputs, options);
	if (!status)
		status = add_all(inputs, options);
	if (!status)
		status = check_places(inputs);
	if (!status && !inputs->count && !inputs->failed)
		report_remark("no images in %s", options->operands[0]);
	return status;
}

void inputs_fini(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++) {
		free(inputs->tasks[i].input);
		free(inputs->tasks[i].output);
	}
	free(inputs->tasks);
	free(inputs->directory);
	guard_fini(&inputs->guard);
}
