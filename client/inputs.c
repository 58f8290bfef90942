/* Finds the inputs and chooses the places of their results. */
#include "client/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/in_place.h"
#include "client/interrupt.h"
#include "client/listing.h"
#include "client/output.h"
#include "client/place.h"
#include "client/report.h"
#include "image/formats.h"

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

/* Returns the length of a name without its suffix and the dot. */
static size_t stem_of(const char *name)
{
	const char *suffix = suffix_of(name);

	return *suffix ? (size_t)(suffix - 1 - name) : strlen(name);
}

/* Returns the path of a result in the output directory: the input's name there, with the suffix of
 * the format that --format names. */
static char *result_of(const struct inputs *inputs, const char *name, const char *format)
{
	size_t stem = format ? stem_of(name) : strlen(name);
	char *place = NULL;

	if (asprintf(&place, "%s/%.*s%s%s", inputs->directory, (int)stem, name, format ? "." : "",
	             format ? format : "") < 0)
		abort();
	return place;
}

/* Returns the path of a result that lies beside its input, or in its place. It is without links but
 * for the last part, so that a file that comes under two names has one result. */
static char *beside(const struct inputs *inputs, const char *input)
{
	const char *slash = strrchr(input, '/'), *name = slash ? slash + 1 : input;
	size_t stem = inputs->in_place ? strlen(name) : stem_of(name);
	const char *ending = inputs->format && !inputs->in_place ? inputs->format : suffix_of(name);
	char *directory = slash ? strndup(input, (size_t)(slash - input)) : strdup(".");
	char *path = NULL, *place = NULL;

	if (!directory)
		abort();
	if (place_kind(input) == PLACE_FILE)
		path = realpath(*directory ? directory : "/", NULL);
	if (asprintf(&place, "%s/%.*s%s%s%s", path ? path : directory, (int)stem, name,
	             inputs->suffix ? inputs->suffix : "", inputs->suffix && *ending ? "." : "",
	             inputs->suffix ? ending : "") < 0)
		abort();
	free(path);
	free(directory);
	return place;
}

/* Returns why the place beside an input, or its own, can have no result; or NULL. */
static const char *check_place_beside(const struct inputs *inputs, const char *input,
                                      const char *output)
{
	return inputs->in_place ? in_place_check_name(input, suffix_of(input), inputs->format)
	                        : place_check_output(output, false);
}

/* Tells whether an input has the name of a result that lies beside its own input. */
static bool is_named_result(struct inputs *inputs, const char *input)
{
	const char *slash = strrchr(input, '/'), *name = slash ? slash + 1 : input;
	size_t stem = stem_of(name), size = inputs->suffix ? strlen(inputs->suffix) : 0;
	bool is = size && stem > size && !strncmp(name + stem - size, inputs->suffix, size);

	inputs->results += is;
	return is;
}

static const char no_place[] = "the name has no path below a directory, so its result has no place";

/* Adds an input; `output` is NULL if that lies beside it. `info` is NULL if stat() failed: opening
 * the input then says why. */
static void add(struct inputs *inputs, const char *input, char *output, const struct stat *info)
{
	const char **wrong;

	if (is_named_result(inputs, input)) {
		free(output);
		return;
	}
	if (!(inputs->count & (inputs->count + 1))) /* full: 0, 1, 3, 7 … */
		inputs->tasks =
		    reallocarray(inputs->tasks, 2 * inputs->count + 1, sizeof *inputs->tasks);
	if (!inputs->tasks)
		abort();
	inputs->tasks[inputs->count] =
	    (struct task){.input = strdup(input),
	                  .name = place_shown(input),
	                  .output = output ? output : beside(inputs, input),
	                  .size = info ? info->st_size : 0};
	if (!inputs->tasks[inputs->count].input)
		abort();
	wrong = &inputs->tasks[inputs->count].wrong;
	if (inputs_are_beside(inputs))
		*wrong = check_place_beside(inputs, input, inputs->tasks[inputs->count].output);
	if (!*wrong && place_kind(input) == PLACE_OBJECT)
		*wrong = place_check(input);
	if (!*wrong && output && !*output)
		*wrong = no_place;
	if (info)
		guard_add(&inputs->guard, info, inputs->tasks[inputs->count].input);
	inputs->count++;
}

static int by_name(const FTSENT **one, const FTSENT **other)
{
	return strcmp((*one)->fts_name, (*other)->fts_name);
}

/* A directory's files come one after another, so that its record stays open. */
static int files_first(const FTSENT **one, const FTSENT **other)
{
	bool a = (*one)->fts_info == FTS_D, b = (*other)->fts_info == FTS_D;

	return a != b ? a - b : by_name(one, other);
}

/* Tells whether a file's name says that it is an image. */
static bool is_image(const char *name)
{
	enum format format = format_parse(suffix_of(name));

	return *name != '.' && format != FORMAT_NONE && format != FORMAT_RAW;
}

/* Tells whether one of the patterns fits: one with a slash the path below the directory, another
 * one the name. */
static bool is_matched(const struct texts *patterns, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < patterns->count; i++)
		if (!fnmatch(patterns->list[i], strchr(patterns->list[i], '/') ? path : name, 0))
			return true;
	return false;
}

static bool is_wanted(const struct inputs *inputs, const char *path)
{
	return (!inputs->include->count || is_matched(inputs->include, path)) &&
	       !is_matched(inputs->exclude, path);
}

/* Returns the place of a result of an input with this path below the directory that was given; NULL
 * if that is beside it. */
static char *place_of(const struct inputs *inputs, const char *path)
{
	return inputs_are_beside(inputs) ? NULL : result_of(inputs, path, inputs->format);
}

/* Adds one entry of a directory, except for hidden files and the results of former runs. */
static void add_entry(struct inputs *inputs, FTS *tree, FTSENT *entry, size_t root,
                      const struct stat *results)
{
	const char *name = entry->fts_path + root;
	bool is_results;

	switch (entry->fts_info) {
	case FTS_D:
		is_results = entry->fts_statp->st_dev == results->st_dev &&
		             entry->fts_statp->st_ino == results->st_ino;
		if (entry->fts_level > 0 && (entry->fts_name[0] == '.' || is_results)) {
			fts_set(tree, entry, FTS_SKIP);
		}
		break;
	case FTS_F:
		name += strspn(name, "/");
		if (is_image(entry->fts_name) && is_wanted(inputs, name))
			add(inputs, entry->fts_path, place_of(inputs, name), entry->fts_statp);
		else if (!is_image(entry->fts_name))
			inputs->left_out += entry->fts_name[0] != '.';
		break;
	case FTS_SL:
	case FTS_SLNONE:
		inputs->links += entry->fts_name[0] != '.';
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

/* Links are followed, unless results would go where they lead. */
static void add_directory(struct inputs *inputs, const char *path)
{
	char *const roots[] = {(char *)path, NULL};
	bool beside = inputs_are_beside(inputs);
	FTS *tree =
	    fts_open(roots, (beside ? FTS_PHYSICAL | FTS_COMFOLLOW : FTS_LOGICAL) | FTS_NOCHDIR,
	             beside ? files_first : by_name);
	struct stat results = {0};

	if (!tree)
		abort();
	if (beside || stat(inputs->directory, &results))
		results = (struct stat){0}; /* it does not exist yet */
	for (FTSENT *entry; !interrupt_number() && (entry = fts_read(tree));)
		add_entry(inputs, tree, entry, strlen(path), &results);
	fts_close(tree);
}

/* A prefix whose objects are added. */
struct prefix {
	struct inputs *inputs;
	const char *name;
};

/* Tells whether a part of the path is hidden, as in directories; . and .. are not. */
static bool is_hidden(const char *path)
{
	for (const char *part = path; *part; part += *part == '/') {
		size_t size = strcspn(part, "/");

		if (*part == '.' && strspn(part, ".") < size)
			return true;
		part += size;
	}
	return false;
}

/* Does the same for an object below a prefix: a path of files has neither empty parts nor dots.
 * Returns an empty text if there is no such path. */
static char *place_below(const struct inputs *inputs, const char *path)
{
	char *place = NULL, *named = NULL, *kept;

	if (inputs_are_beside(inputs) || place_kind(inputs->directory) == PLACE_OBJECT)
		return place_of(inputs, path);
	if (asprintf(&named, "./%s", path) < 0)
		abort();
	kept = place_kept(named, true, false);
	place = kept ? place_of(inputs, kept) : strdup("");
	if (!place)
		abort();
	free(named);
	free(kept);
	return place;
}

/* Adds an object below a prefix, except for the results of former runs. */
static void add_object(void *context, const char *key, int64_t size)
{
	const struct prefix *prefix = context;
	struct inputs *inputs = prefix->inputs;
	const char *path = key + strlen(place_object(prefix->name).key),
	           *slash = strrchr(path, '/');
	const char *directory = inputs->directory ? inputs->directory : "";
	struct stat info = {.st_size = (off_t)size};
	size_t length = strlen(directory);
	char *name = NULL;
	bool is_result;

	if (asprintf(&name, "%.*s%s", (int)(place_object(prefix->name).key - prefix->name),
	             prefix->name, key) < 0)
		abort();
	is_result = length >= strlen(prefix->name) && !strncmp(name, directory, length) &&
	            name[length] == '/';
	if (!is_result && !is_hidden(path) && is_image(slash ? slash + 1 : path) &&
	    is_wanted(inputs, path)) {
		add(inputs, name, place_below(inputs, path), &info);
	} else if (!is_result && *path && path[strlen(path) - 1] != '/' && !is_hidden(path)) {
		inputs->left_out += !is_image(slash ? slash + 1 : path);
	}
	free(name);
	if (inputs->count % 1000 == 1)
		report_waiting("listing %s: %zu images", prefix->name, inputs->count);
}

static enum exit_code add_prefix(struct inputs *inputs, const char *name,
                                 const struct server *server, struct aws *aws)
{
	struct prefix prefix = {inputs, name};
	enum exit_code status = aws_load(aws);

	if (!status)
		status = listing_read(server, aws, name, add_object, &prefix);
	report_clear();
	return status;
}

static int by_input(const void *one, const void *other)
{
	const struct task *const *a = one, *const *b = other;

	return strcmp((*a)->input, (*b)->input);
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

/* Returns the input whose place a result would take, or NULL. `sorted` is by input. */
static const char *find_input(const struct inputs *inputs, const struct task **sorted,
                              const struct task *task)
{
	struct task wanted = {.input = task->output};
	const struct task *const key = &wanted, **found;
	struct stat there;

	if (place_kind(task->output) == PLACE_FILE)
		return look_at(task->output, STDOUT_FILENO, &there)
		           ? guard_find(&inputs->guard, &there)
		           : NULL;
	found = bsearch(&key, sorted, inputs->count, sizeof *sorted, by_input);
	return found ? (*found)->input : NULL;
}

/* Checks that no two results have the same place, and none has an input's. */
static enum exit_code check_places(const struct inputs *inputs)
{
	const struct task **sorted = calloc(inputs->count + 1, sizeof *sorted);
	enum exit_code status = EXIT_DONE;
	const char *input;

	if (!sorted)
		abort();
	for (size_t i = 0; i < inputs->count; i++)
		sorted[i] = &inputs->tasks[i];
	qsort(sorted, inputs->count, sizeof *sorted, by_input);
	for (size_t i = 0; i < inputs->count && !status && !inputs->in_place; i++)
		if ((input = find_input(inputs, sorted, &inputs->tasks[i]))) {
			report_error("the result of %s would overwrite %s: choose another output",
			             inputs->tasks[i].name, input);
			status = EXIT_USAGE;
		}
	qsort(sorted, inputs->count, sizeof *sorted, by_output);
	for (size_t i = 1; i < inputs->count && !status; i++)
		if (*sorted[i]->output && !strcmp(sorted[i]->output, sorted[i - 1]->output)) {
			report_error("%s and %s would both become %s", sorted[i - 1]->name,
			             sorted[i]->name, sorted[i]->output);
			status = EXIT_USAGE;
		}
	free(sorted);
	return status;
}

/* Tells whether a path that does not exist yet looks like that of a single image. */
static bool is_for_one(const char *place)
{
	return place[strlen(place) - 1] != '/' &&
	       (place_kind(place) != PLACE_FILE || access(place, F_OK)) &&
	       format_parse(suffix_of(place)) != FORMAT_NONE;
}

/* Tells whether results go into the place: a directory, or the keys that begin with it. */
static bool is_for_several(const char *place)
{
	return place[strlen(place) - 1] == '/' || is_directory(place) ||
	       (place_kind(place) == PLACE_OBJECT && !*place_object(place).key);
}

/* Keeps the directory without slashes at its end; a key, which may have several, loses one. */
static enum exit_code set_directory(struct inputs *inputs, const char *directory)
{
	size_t length = strlen(directory);

	while (length > 1 && directory[length - 1] == '/') {
		length--;
		if (place_kind(directory) == PLACE_OBJECT)
			break;
	}
	inputs->directory = strndup(directory, length);
	if (!inputs->directory)
		abort();
	if (place_kind(directory) != PLACE_FILE || is_directory(inputs->directory) ||
	    access(inputs->directory, F_OK))
		return EXIT_DONE;
	report_error("%s is a file: several results need a directory", inputs->directory);
	return EXIT_USAGE;
}

static enum exit_code check_output(const char *place, bool directory)
{
	const char *wrong = place ? place_check_output(place, directory) : NULL;

	char *shown = wrong ? place_shown(place) : NULL;

	if (wrong)
		report_error("%s: %s", shown, wrong);
	free(shown);
	return wrong ? EXIT_USAGE : EXIT_DONE;
}

/* Checks options for results that have no directory of their own. */
static enum exit_code check_beside(const struct inputs *inputs, const struct options *options)
{
	const char *name = inputs->in_place ? "--in-place" : "--suffix";

	if (options->output || options->output_dir || (inputs->in_place && inputs->suffix))
		report_error("%s and %s: give one place for results", name,
		             options->output       ? "-o"
		             : options->output_dir ? "--output-dir"
		                                   : "--suffix");
	else if (inputs->are_jobs)
		report_error("%s: a job has no input file: give -o", name);
	else if (inputs->suffix && (!*inputs->suffix || strchr(inputs->suffix, '/')))
		report_error("--suffix: expected a text without slashes, such as -small, not %s",
		             *inputs->suffix ? inputs->suffix : "nothing");
	else
		return EXIT_DONE;
	return EXIT_USAGE;
}

/* Returns the output directory that the options name; or NULL. */
static enum exit_code find_directory(struct inputs *inputs, const struct options *options)
{
	const char *out = options->output, *directory = options->output_dir;
	bool several = options->files_from || options->operand_count > 1 ||
	               (options->operand_count && (is_directory(options->operands[0]) ||
	                                           place_is_prefix(options->operands[0])));

	if (out && directory) {
		report_error("-o and --output-dir mean the same: give one of them");
		return EXIT_USAGE;
	}
	if (!directory && out && *out && (several || is_for_several(out)))
		directory = out;
	if (several && out && check_output(out, true))
		return EXIT_USAGE;
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
	if (check_output(directory ? directory : out, directory != NULL))
		return EXIT_USAGE;
	return directory ? set_directory(inputs, directory) : EXIT_DONE;
}

/* Uses standard input and output for places that were not named, unless they are a terminal. */
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

static enum exit_code add_operand(struct inputs *inputs, const char *input,
                                  const struct server *server, struct aws *aws)
{
	bool to_object = inputs->directory && place_kind(inputs->directory) == PLACE_OBJECT;
	struct stat info;
	char *kept;

	if (!strcmp(input, "-")) {
		report_error("standard input has no file name: give -o FILE%s",
		             inputs->directory ? " instead of a directory" : "");
		return EXIT_USAGE;
	}
	if (is_directory(input)) {
		add_directory(inputs, input);
		return EXIT_DONE;
	}
	if (place_is_prefix(input) && !inputs->in_place)
		return add_prefix(inputs, input, server, aws);
	if (inputs_are_beside(inputs)) {
		add(inputs, input, NULL, stat(input, &info) ? NULL : &info);
		return EXIT_DONE;
	}
	kept = place_kept(input, false, to_object);
	if (!kept) {
		report_error("%s: %s", input, no_place);
		return EXIT_USAGE;
	}
	add(inputs, input, result_of(inputs, kept, inputs->format),
	    stat(input, &info) ? NULL : &info);
	free(kept);
	return EXIT_DONE;
}

static enum exit_code check_input(const char *input)
{
	const char *wrong = place_is_prefix(input) ? NULL : place_check(input);
	char *name = place_shown(input);

	if (wrong)
		report_error("%s: %s", name, wrong);
	free(name);
	return wrong ? EXIT_USAGE : EXIT_DONE;
}

static enum exit_code open_list(struct inputs *inputs, const struct options *options)
{
	char *shown;
	int error;

	if (options->operand_count) {
		shown = place_shown(options->operands[0]);
		report_error("--files-from and %s: give names on the command line, or a list",
		             shown);
		free(shown);
		return EXIT_USAGE;
	}
	error = list_open(&inputs->list, options->files_from, options->null ? '\0' : '\n');
	if (error)
		report_error("%s: %s", options->files_from, strerror(error));
	return error ? EXIT_USAGE : EXIT_DONE;
}

static enum exit_code add_all(struct inputs *inputs, const struct options *options,
                              const struct server *server, struct aws *aws)
{
	enum exit_code status = EXIT_DONE;

	for (size_t i = 0; i < options->operand_count && !status; i++)
		status = check_input(options->operands[i]);
	if (status)
		return status;
	if (!inputs->directory && !inputs_are_beside(inputs))
		return add_single(inputs, options->operand_count ? options->operands[0] : "-",
		                  options->output);
	if (!options->operand_count) {
		report_error("no input: give image files, or a directory");
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < options->operand_count && !status; i++)
		status = add_operand(inputs, options->operands[i], server, aws);
	return status;
}

enum exit_code inputs_find(struct inputs *inputs, const struct options *options,
                           const struct mask *mask, const struct server *server, struct aws *aws)
{
	enum exit_code status;

	*inputs = (struct inputs){.list.fd = -1,
	                          .format = options_parameter(options, "format"),
	                          .in_place = options->in_place,
	                          .include = &options->include,
	                          .exclude = &options->exclude,
	                          .suffix = options->suffix,
	                          .are_jobs = !strcmp(options->command, "jobs")};
	if (mask->name)
		guard_add(&inputs->guard, &mask->info, mask->name);
	if (options->null && !options->files_from) {
		report_error("--null needs --files-from");
		return EXIT_USAGE;
	}
	if (options->files_from && (options->include.count || options->exclude.count)) {
		report_error("%s is for directories and prefixes, not for --files-from",
		             options->include.count ? "--include" : "--exclude");
		return EXIT_USAGE;
	}
	status = inputs_are_beside(inputs) ? check_beside(inputs, options)
	                                   : find_directory(inputs, options);
	if (!status && options->files_from)
		return open_list(inputs, options);
	if (!status)
		status = add_all(inputs, options, server, aws);
	if (!status)
		status = check_places(inputs);
	if (!status && !inputs->count && !inputs->failed && !inputs->results)
		report_remark("no images in %s, of %zu files", options->operands[0],
		              inputs->left_out);
	return status;
}

static void free_task(struct task *task)
{
	free(task->input);
	free(task->name);
	free(task->output);
}

/* Makes a task of a list's line. */
static struct task *task_of(const struct inputs *inputs, const char *name)
{
	struct task *task = calloc(1, sizeof *task);
	bool is_beside = inputs_are_beside(inputs);
	bool to_object = !is_beside && place_kind(inputs->directory) == PLACE_OBJECT;
	char *kept = NULL;

	if (!task || !(task->input = strdup(strcmp(name, "-") ? name : "./-")))
		abort();
	task->name = place_shown(task->input);
	task->wrong = place_check(name);
	if (!task->wrong && is_beside) {
		task->output = beside(inputs, task->input);
		task->wrong = check_place_beside(inputs, task->input, task->output);
	} else if (!task->wrong) {
		kept = place_kept(name, true, to_object);
		task->wrong = kept ? NULL : no_place;
	}
	if (kept)
		task->output = result_of(inputs, kept, inputs->format);
	free(kept);
	return task;
}

enum supply inputs_next(struct inputs *inputs, struct task **task)
{
	enum supply supply;
	const char *name;

	if (!inputs_is_list(inputs)) {
		if (inputs->next == inputs->count)
			return SUPPLY_END;
		*task = &inputs->tasks[inputs->next++];
		return SUPPLY_READY;
	}
	do
		supply = list_next(&inputs->list, &name);
	while (supply == SUPPLY_READY && is_named_result(inputs, name));
	if (supply == SUPPLY_READY)
		*task = task_of(inputs, name);
	return supply;
}

void inputs_remark(const struct inputs *inputs)
{
	if (inputs->links)
		report_remark("left out: %zu symbolic link%s, which %s does not follow",
		              inputs->links, inputs->links > 1 ? "s" : "",
		              inputs->in_place ? "--in-place" : "--suffix");
	if (inputs->results)
		report_remark("left out: %zu name%s with %s at the end, as results have it",
		              inputs->results, inputs->results > 1 ? "s" : "", inputs->suffix);
}

int inputs_open(const char *path, struct stat *info)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC)
	                           : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	int error = fd < 0 || fstat(fd, info) ? errno : 0, copy = -1;

	if (!error && S_ISDIR(info->st_mode))
		error = EISDIR;
	if (!error && (!S_ISREG(info->st_mode) || lseek(fd, 0, SEEK_CUR))) {
		copy = output_nameless();
		error = copy < 0 ? errno : output_copy(fd, copy);
		if (!error && fstat(copy, info))
			error = errno;
		close(fd);
		fd = copy;
	}
	if (error && fd >= 0)
		close(fd);
	errno = error;
	return error ? -1 : fd;
}

void inputs_release(const struct inputs *inputs, struct task *task)
{
	if (!inputs_is_list(inputs))
		return;
	free_task(task);
	free(task);
}

void inputs_fini(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++)
		free_task(&inputs->tasks[i]);
	free(inputs->tasks);
	free(inputs->directory);
	list_close(&inputs->list);
	guard_fini(&inputs->guard);
}
