/* Inputs and the places of their results. */
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
#include "common/image.h"

static const char *suffix_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	return dot && dot > name ? dot + 1 : "";
}

static bool is_folder(const char *path)
{
	struct stat info;

	return !stat(path, &info) && S_ISDIR(info.st_mode);
}

/* The place in the folder of results: the name there, with the suffix of the format if that was
 * asked for by name. */
static char *place_of(const struct inputs *inputs, const char *name, const char *format)
{
	const char *suffix = suffix_of(name);
	size_t stem = format && *suffix ? (size_t)(suffix - 1 - name) : strlen(name);
	char *place = NULL;

	if (asprintf(&place, "%s/%.*s%s%s", inputs->folder, (int)stem, name, format ? "." : "",
	             format ? format : "") < 0)
		abort();
	return place;
}

/* `info` is NULL if the input cannot be looked at: what is wrong is said when it is opened. */
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

/* Whether a file's name says that it is an image. */
static bool is_image(const char *name)
{
	enum format format = format_parse(suffix_of(name));

	return *name != '.' && format != FORMAT_NONE && format != FORMAT_RAW;
}

/* One thing in a folder. What is hidden, and the results of former runs, are left out. */
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

static void add_folder(struct inputs *inputs, const char *path, const char *format)
{
	char *const roots[] = {(char *)path, NULL};
	FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	struct stat results = {0};

	if (!tree)
		abort();
	if (stat(inputs->folder, &results))
		results = (struct stat){0}; /* it will be made */
	for (FTSENT *entry; !interrupt_number() && (entry = fts_read(tree));)
		add_entry(inputs, tree, entry, strlen(path), &results, format);
	fts_close(tree);
}

static int by_output(const void *one, const void *other)
{
	const struct task *const *a = one, *const *b = other;

	return strcmp((*a)->output, (*b)->output);
}

/* Looks at what an input or an output is now; `standard` is what "-" stands for. */
static bool look_at(const char *path, int standard, struct stat *info)
{
	return !(strcmp(path, "-") ? stat(path, info) : fstat(standard, info));
}

/* No two results may have the same place, and none that of an input. */
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
			report_error("the result of %s would overwrite %s: choose another place",
			             sorted[i]->input, input);
			status = EXIT_USAGE;
		}
	}
	free(sorted);
	return status;
}

/* Whether a place that is not there yet looks like that of a single image. */
static bool is_for_one(const char *place)
{
	return place[strlen(place) - 1] != '/' && access(place, F_OK) &&
	       format_parse(suffix_of(place)) != FORMAT_NONE;
}

/* The folder of results that the options ask for, without slashes at its end, or NULL. */
static enum exit_code find_folder(struct inputs *inputs, const struct options *options)
{
	const char *out = options->output, *folder = options->output_dir;
	bool several = options->operand_count > 1 ||
	               (options->operand_count && is_folder(options->operands[0]));
	size_t length = out ? strlen(out) : 0;

	inputs->several = options->operand_count > 1;
	if (out && folder) {
		report_error("-o and --output-dir say the same thing: give one of them");
		return EXIT_USAGE;
	}
	if (!folder && length && (several || out[length - 1] == '/' || is_folder(out)))
		folder = out;
	if (several && folder && folder == out && is_for_one(out)) {
		report_error("several images, and one place: %s/ would be a folder", out);
		return EXIT_USAGE;
	}
	if (several && (!folder || !strcmp(folder, "-"))) {
		report_error("several images need a folder for their results: -o FOLDER/");
		return EXIT_USAGE;
	}
	if (!folder)
		return EXIT_DONE;
	length = strlen(folder);
	while (length > 1 && folder[length - 1] == '/')
		length--;
	inputs->folder = strndup(folder, length);
	if (!inputs->folder)
		abort();
	if (!is_folder(inputs->folder) && !access(inputs->folder, F_OK)) {
		report_error("%s is a file: several results need a folder", inputs->folder);
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

/* Standard input and output take the places that were not named, unless those are a terminal. */
static enum exit_code add_single(struct inputs *inputs, const char *input, const char *output)
{
	struct stat info;

	if (!output && !strcmp(input, "-"))
		output = "-";
	if (!output) {
		report_error("where is the result to go? -o FILE, or -o - for standard output");
		return EXIT_USAGE;
	}
	if ((!strcmp(input, "-") && isatty(STDIN_FILENO)) ||
	    (!strcmp(output, "-") && isatty(STDOUT_FILENO))) {
		report_error(
		    "an image is not read from a terminal, nor written to it; see convolve "
		    "--help");
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
		report_error("standard input has no name in a folder: give -o FILE");
		return EXIT_USAGE;
	}
	if (is_folder(input)) {
		inputs->several = true;
		add_folder(inputs, input, format);
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

	if (!inputs->folder)
		return add_single(inputs, options->operand_count ? options->operands[0] : "-",
		                  options->output);
	if (!options->operand_count) {
		report_error("which images? name them, or a folder");
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
	status = find_folder(inputs, options);
	if (!status)
		status = add_all(inputs, options);
	if (!status)
		status = check_places(inputs);
	if (!status && !inputs->count && !inputs->failed)
		report_remark("there is no image in %s", options->operands[0]);
	return status;
}

void inputs_fini(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++) {
		free(inputs->tasks[i].input);
		free(inputs->tasks[i].output);
	}
	free(inputs->tasks);
	free(inputs->folder);
	guard_fini(&inputs->guard);
}
