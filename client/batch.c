/* Takes the inputs one after another, as the loop of transfers asks for them. */
#include "client/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/inputs.h"
#include "client/interrupt.h"
#include "client/manifest.h"
#include "client/output.h"
#include "client/report.h"
#include "client/transfer.h"
#include "client/views.h"

struct batch {
	const struct options *options;
	struct inputs inputs;
	struct manifest *manifest; /* NULL: a single result */
	size_t next;
	char *unsynced; /* directory whose latest results may not be on the disk yet, or NULL */
	struct progress progress;
	enum exit_code status;
	bool full; /* the disk is full: no further results */
};

/* An image under way. */
struct work {
	const struct task *task;
	int input;
	struct stat info; /* of the input */
	struct output output;
	char *target;
};

static void add_parameter(FILE *target, char *separator, const char *name, const char *value)
{
	char *n = curl_easy_escape(NULL, name, 0), *v = curl_easy_escape(NULL, value, 0);

	if (!n || !v)
		abort();
	fprintf(target, "%c%s=%s", *separator, n, v);
	*separator = '&';
	curl_free(n);
	curl_free(v);
}

/* Path and query of the request. One filter has a route of its own and takes its parameters by
 * name; a chain carries them in its own text. */
static char *target_of(const struct options *options, const char *output)
{
	const char *command = options->command, *dot = strrchr(output, '.');
	bool empty = !strcmp(command, "chain");
	bool chain = empty || strpbrk(command, "=,") || options_parameter(options, "luma") ||
	             options_parameter(options, "chroma");
	char *text = NULL, *name = curl_easy_escape(NULL, command, 0), separator = '?';
	size_t size;
	FILE *target = open_memstream(&text, &size);

	if (!target || !name)
		abort();
	fprintf(target, "/v1/%s%s", chain ? "chain" : "filters/", chain ? "" : name);
	curl_free(name);
	if (chain && !empty)
		add_parameter(target, &separator, "filters", command);
	for (size_t i = 0; i < options->parameter_count; i++)
		add_parameter(target, &separator, options->parameters[i].name,
		              options->parameters[i].value);
	if (!options_parameter(options, "format") && dot && dot[1] && !strchr(dot, '/'))
		add_parameter(target, &separator, "format", dot + 1);
	if (fclose(target))
		abort();
	return text;
}

/* Opens an input. Anything but a plain file at its start is first copied to one, since a request
 * may have to be sent again. */
static int open_input(const char *path, struct stat *info)
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

static void fail(struct batch *b, const struct task *task, const char *what, const char *why)
{
	if (why)
		report_error("%s: %s",
		             strcmp(what, "-")     ? what
		             : what == task->input ? "standard input"
		                                   : "standard output",
		             why);
	b->progress.bytes -= (uint64_t)task->size;
	b->progress.failed++;
	b->status = EXIT_SOME_FAILED;
}

/* A result could not be written. If the disk is full, the batch ends. */
static void fail_output(struct batch *b, const struct task *task, int error)
{
	b->full |= error == ENOSPC || error == EDQUOT;
	fail(b, task, task->output, strerror(error));
}

static void forget(struct work *w)
{
	if (w->input >= 0)
		close(w->input);
	output_discard(&w->output);
	free(w->target);
	free(w);
}

/* True if an earlier result is in the result's place, inside the input directory: inputs_init()
 * left it out of the inputs. */
static bool is_original(const struct batch *b, const struct task *task)
{
	return b->inputs.inside && !access(task->output, F_OK) &&
	       !manifest_knows(b->manifest, task->output);
}

/* Prepares an image for sending; false if that failed, or its result exists already. */
static bool prepare(struct batch *b, struct work *w)
{
	const struct task *task = w->task;
	struct stat result;
	int error;

	w->input = open_input(task->input, &w->info);
	if (w->input < 0) {
		fail(b, task, task->input, interrupt_number() ? NULL : strerror(errno));
		return false;
	}
	if (!w->info.st_size) {
		fail(b, task, task->input, "the file is empty");
		return false;
	}
	guard_add(&b->inputs.guard, &w->info, task->input);
	w->target = target_of(b->options, task->output);
	if (b->manifest && !b->options->force &&
	    manifest_has(b->manifest, task->output, &result, task->input, &w->info, w->target)) {
		guard_add(&b->inputs.guard, &result, task->output);
		b->progress.skipped++;
		b->progress.bytes -= (uint64_t)task->size;
		return false;
	}
	if (is_original(b, task)) {
		fail(b, task, task->output,
		     "the file is not a result of this command: choose another directory");
		return false;
	}
	error = output_open(&w->output, task->output);
	if (error)
		fail_output(b, task, error);
	return !error;
}

static bool next_image(void *context, struct exchange *e)
{
	struct batch *b = context;

	while (b->next < b->inputs.count && !b->full && !interrupt_number()) {
		struct work *w = calloc(1, sizeof *w);

		if (!w)
			abort();
		w->task = &b->inputs.tasks[b->next++];
		w->input = w->output.fd = w->output.stream = -1;
		report_progress(&b->progress);
		if (prepare(b, w)) {
			e->owner = w;
			e->target = w->target;
			e->body = w->input;
			e->size = w->info.st_size;
			e->result = w->output.fd;
			e->own_format = !options_parameter(b->options, "format");
			return true;
		}
		forget(w);
	}
	return false;
}

/* Prints the headers in which the service describes a result. */
static void print_facts(const struct exchange *e, const struct task *task)
{
	struct curl_header *h = NULL;

	report_remark("%s -> %s", task->input, task->output);
	while ((h = curl_easy_nextheader(e->easy, CURLH_HEADER, -1, h)))
		if (!strncasecmp(h->name, "X-", 2) || !strcasecmp(h->name, "Server-Timing"))
			report_remark("  %s: %s", h->name, h->value);
}

/* Syncs a directory of results when the results start to go elsewhere, and at the end. Syncing
 * after each result would be slow; the exit status promises no more than this. */
static void sync_directory(struct batch *b, char *next)
{
	int error;

	if (b->unsynced && next && !strcmp(b->unsynced, next)) {
		free(next);
		return;
	}
	error = b->unsynced ? output_sync_directory(b->unsynced) : 0;
	if (error) {
		report_error("%s: %s", b->unsynced, strerror(error));
		b->status = EXIT_SOME_FAILED;
	}
	free(b->unsynced);
	b->unsynced = next;
}

/* Moves the result to its place, unless an input or another result is there. */
static bool place_result(struct batch *b, struct work *w, struct stat *result)
{
	char *directory = output_directory(&w->output), *why = NULL;
	const char *guarded;
	int error = output_commit(&w->output, &b->inputs.guard, &guarded, result);

	if (!error && directory) {
		guard_add(&b->inputs.guard, result, w->task->output);
		sync_directory(b, directory);
		return true;
	}
	free(directory);
	if (guarded &&
	    asprintf(&why, "it is the same file as %s, which is not overwritten", guarded) < 0)
		abort();
	if (why)
		fail(b, w->task, w->task->output, why);
	else if (error)
		fail_output(b, w->task, error);
	free(why);
	return !error;
}

static void keep_result(struct batch *b, struct work *w, const struct exchange *e)
{
	struct stat result;
	const char *wrong;

	if (!place_result(b, w, &result))
		return;
	b->progress.done++;
	b->progress.bytes_done += (uint64_t)w->task->size;
	if (b->options->verbose)
		print_facts(e, w->task);
	wrong = b->manifest ? manifest_add(b->manifest, w->task->output, &result, w->task->input,
	                                   &w->info, w->target)
	                    : NULL;
	if (wrong)
		report_remark("%s will be made again next time: cannot write the manifest: %s",
		              w->task->output, wrong);
}

static bool image_done(void *context, struct exchange *e)
{
	struct batch *b = context;
	struct work *w = e->owner;
	enum outcome outcome = e->outcome;

	if (outcome == OUTCOME_DONE)
		keep_result(b, w, e);
	else if (outcome == OUTCOME_UNREACHABLE)
		report_error("%s", e->text);
	else if (outcome != OUTCOME_GIVEN_UP)
		fail(b, w->task, w->task->input, e->text);
	if (outcome == OUTCOME_UNREACHABLE)
		b->status = EXIT_UNREACHABLE;
	if (outcome == OUTCOME_WRONG)
		b->status = EXIT_USAGE;
	b->full |= e->failure == ENOSPC || e->failure == EDQUOT;
	forget(w);
	return outcome != OUTCOME_UNREACHABLE && outcome != OUTCOME_REFUSED &&
	       outcome != OUTCOME_WRONG && !b->full;
}

static void tick(void *context)
{
	const struct batch *b = context;

	report_progress(&b->progress);
}

static enum exit_code run(struct batch *b, const struct server *server)
{
	const struct transfers transfers = {next_image, image_done, tick, b};

	if (b->inputs.several && b->inputs.count) {
		b->manifest = manifest_open(b->inputs.directory);
		if (!b->manifest)
			return EXIT_SOME_FAILED;
	}
	b->status = b->inputs.failed ? EXIT_SOME_FAILED : EXIT_DONE;
	b->progress = (struct progress){.count = b->inputs.count, .since = report_now()};
	for (size_t i = 0; i < b->inputs.count; i++)
		b->progress.bytes += (uint64_t)b->inputs.tasks[i].size;
	transfer_run(server, b->options->jobs, &transfers);
	sync_directory(b, NULL);
	report_summary(&b->progress);
	manifest_close(b->manifest);
	return b->status;
}

enum exit_code batch_run(const struct options *options, const struct server *server)
{
	struct batch b = {.options = options};
	enum exit_code status = views_check_parameters(options, server);

	if (!status)
		status = inputs_find(&b.inputs, options);

	if (!status)
		status = run(&b, server);
	inputs_fini(&b.inputs);
	return status;
}
