/* The steps of an image. */
#include "client/work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/hash.h"
#include "client/in_place.h"
#include "client/interrupt.h"
#include "client/place.h"
#include "client/request.h"
#include "client/store.h"
#include "image/formats.h"

/* Metadata of a result that is an object, below x-amz-meta-. No name begins another one
 * (store.c). */
#define META_MADE   "x-amz-meta-convolve-made"   /* hash of the input's name and the request */
#define META_RUN    "x-amz-meta-convolve-run"    /* the run that made it */
#define META_SOURCE "x-amz-meta-convolve-source" /* the version of an input that is elsewhere */

void work_fail(struct batch *b, struct work *w, const char *what, const char *why)
{
	if (why)
		report_error("%s: %s",
		             strcmp(what, "-")       ? what
		             : what == w->task->name ? "standard input"
		                                     : "standard output",
		             why);
	b->progress.bytes -= (uint64_t)w->task->size;
	b->progress.failed++;
	b->status = EXIT_SOME_FAILED;
}

/* Fails an image whose result could not be written. If the disk is full, the batch ends. */
static void fail_output(struct batch *b, struct work *w, int error)
{
	b->full |= error == ENOSPC || error == EDQUOT;
	work_fail(b, w, w->task->output, strerror(error));
}

static void skip(struct batch *b, struct work *w)
{
	b->progress.skipped++;
	b->progress.bytes -= (uint64_t)w->task->size;
}

struct work *work_new(struct batch *b, struct task *task)
{
	struct work *w = calloc(1, sizeof *w);

	if (!w)
		abort();
	w->task = task;
	w->input = w->output.fd = w->output.lock = w->output.stream = -1;
	w->next = b->works;
	b->works = w;
	return w;
}

void work_free(struct batch *b, struct work *w)
{
	struct work **link = &b->works;

	while (*link != w)
		link = &(*link)->next;
	*link = w->next;
	if (w->input >= 0)
		close(w->input);
	output_discard(&w->output);
	if (w->record)
		records_leave(&b->records, w->record);
	inputs_release(&b->inputs, w->task);
	curl_slist_free_all(w->heads);
	free(w->version);
	free(w->type);
	free(w->condition);
	free(w->target);
	free(w->job);
	free(w->address);
	free(w);
}

/* Requests
 * ---------------------------------------------------------------------------------------- */

static bool is_elsewhere(const char *name)
{
	return place_kind(name) != PLACE_FILE;
}

/* Returns the result's origin as a short text. A file's size and time are part of it; an input
 * elsewhere has its version instead, which is recorded by itself. */
static void describe_making(const struct work *w, char digits[HASH_DIGITS])
{
	hash made = hash_text(hash_text(HASH_START, w->task->name), w->target);

	if (!is_elsewhere(w->task->input)) {
		made = hash_bytes(made, &w->info.st_size, sizeof w->info.st_size);
		made = hash_bytes(made, &w->info.st_mtim, sizeof w->info.st_mtim);
	}
	hash_print(made, digits);
}

/* Begins the step's request: a GET of the service for this address, which it takes, or if that is
 * NULL the request for the image. */
static void ask(struct work *w, struct exchange *e, enum step step, char *address)
{
	free(w->address);
	curl_slist_free_all(w->heads);
	w->heads = NULL;
	w->step = step;
	w->address = address;
	*e = (struct exchange){.easy = e->easy,
	                       .form = e->form,
	                       .own_heads = e->own_heads,
	                       .text = e->text,
	                       .owner = w,
	                       .target = address ? address : w->target,
	                       .body = -1,
	                       .result = -1};
}

/* Asks a peer about, for or with the file of this name. */
static void ask_elsewhere(struct batch *b, struct work *w, struct exchange *e, enum step step,
                          const char *name)
{
	bool object = place_kind(name) == PLACE_OBJECT;
	char *address = strdup(name);

	if (!address)
		abort();
	ask(w, e, step, address);
	e->peer = object ? &store_objects : &store_web;
	e->aws = &b->aws;
	e->look = step == STEP_LOOK;
}

/* Asks for the input; with a version, only if it is still that one. */
static bool fetch(struct batch *b, struct work *w, struct exchange *e)
{
	w->input = output_nameless();
	if (w->input < 0) {
		work_fail(b, w, w->task->name, strerror(errno));
		return false;
	}
	ask_elsewhere(b, w, e, STEP_FETCH, w->task->input);
	if (w->version)
		w->heads = store_unless(w->heads, w->version);
	e->heads = w->heads;
	e->result = w->input;
	return true;
}

/* Sends the result to the store. */
static bool store(struct batch *b, struct work *w, struct exchange *e)
{
	char made[HASH_DIGITS];
	struct stat info;
	int error;

	if (fstat(w->output.fd, &info) || info.st_size > EXCHANGE_PEER_MAX) {
		work_fail(b, w, w->task->output,
		          "the result is too large for an object: the maximum is 5 GiB");
		return false;
	}
	describe_making(w, made);
	ask_elsewhere(b, w, e, STEP_STORE, w->task->output);
	error = store_checksum(&w->heads, w->output.fd);
	if (error) {
		work_fail(b, w, w->task->output, error == EINTR ? NULL : strerror(error));
		return false;
	}
	w->heads = store_head(w->heads, "Content-Type: %s", w->type);
	w->heads = store_head(w->heads, META_MADE ": %s", made);
	w->heads = store_head(w->heads, META_RUN ": %s", b->run);
	if (w->version)
		w->heads = store_head(w->heads, META_SOURCE ": %s", w->version);
	e->heads = w->heads;
	e->condition = w->condition;
	e->body = w->output.fd;
	e->size = info.st_size;
	return true;
}

/* Returns the record of the result; or NULL. */
static struct manifest *manifest_of(const struct batch *b, const struct work *w)
{
	return w->record ? w->record->manifest : b->manifest;
}

/* Tells whether links lead from the place of a list's result out of the directory of results. */
static bool is_outside(const struct batch *b, const char *output)
{
	const char *slash = strrchr(output, '/');
	char *directory = b->root && slash ? strndup(output, (size_t)(slash - output)) : NULL;
	char *path = directory ? realpath(directory, NULL) : NULL;
	size_t root = b->root ? strlen(b->root) : 0;
	bool outside = path && (strncmp(path, b->root, root) != 0 ||
	                        (path[root] && path[root] != '/' && root > 1));

	free(path);
	free(directory);
	return outside;
}

/* Returns why the file in the result's place stays there; NULL if there is none (*there is false),
 * or it may be replaced. The caller frees the text. A pipe or the like is written to, not replaced.
 * A list has no guard of its inputs; they are outside of the directory of results. */
static char *find_obstacle(const struct batch *b, const struct work *w, bool *there)
{
	const char *output = w->task->output, *guarded = NULL, *why = NULL;
	const struct manifest *manifest = manifest_of(b, w);
	struct stat info, target;
	bool known;
	char *text = NULL;

	*there = b->inputs.in_place;
	if (b->inputs.in_place) {
		if (!in_place_is_unchanged(output, &w->info) &&
		    !(text = strdup("it has been changed meanwhile")))
			abort();
		return text;
	}
	if (!strcmp(output, "-") || lstat(output, &info))
		return NULL;
	*there = true;
	if (!stat(output, &target)) {
		guarded = guard_find(&b->inputs.guard, &target);
		if (!S_ISREG(target.st_mode) && !S_ISBLK(target.st_mode))
			return NULL;
	}
	known = S_ISREG(info.st_mode) && manifest && manifest_knows(manifest, output, &info);
	if (guarded && strcmp(guarded, output) != 0) {
		if (asprintf(&text, "it is the same file as %s, which is not overwritten",
		             guarded) < 0)
			abort();
		return text;
	}
	if (known)
		return NULL;
	if (b->options->force)
		why = is_outside(b, output)
		          ? "a link leads there, out of the directory of results, to "
		            "a file that is not a result: move it away"
		          : NULL;
	else if (S_ISLNK(info.st_mode))
		why = "a symbolic link is there: --force replaces it";
	else if (S_ISBLK(info.st_mode))
		why = "it is a disk: --force writes to it";
	else
		why = manifest
		          ? "the file is not a result of this command, or has been changed since: "
		            "--force replaces it"
		          : "the file exists: --force replaces it";
	if (why && !(text = strdup(why)))
		abort();
	return text;
}

/* Fails the image if the file in its result's place stays there. */
static bool is_place_taken(struct batch *b, struct work *w, bool *there)
{
	char *why = find_obstacle(b, w, there);

	if (why)
		work_fail(b, w, w->task->output, why);
	free(why);
	return why != NULL;
}

/* Sends the image to the service; as a job under a key if its result shall not be lost. */
static bool post(struct batch *b, struct work *w, struct exchange *e)
{
	char key[HASH_DIGITS];
	bool durable = b->options->durable;
	int error = durable ? request_key(w->input, w->target, w->task->output, key) : 0;

	if (error) {
		work_fail(b, w, w->task->name, error == EINTR ? NULL : strerror(error));
		return false;
	}
	ask(w, e, STEP_FILTER, NULL);
	if (durable) {
		w->heads = store_head(NULL, "Prefer: respond-async");
		w->heads = store_head(w->heads, "Idempotency-Key: %s", key);
		w->posts++;
		e->accepted = 202;
	}
	e->heads = w->heads;
	e->body = w->input;
	e->size = w->info.st_size;
	e->mask = b->mask.name ? &b->mask : NULL;
	e->result = w->output.fd;
	e->own_format = !options_parameter(b->options, "format");
	return true;
}

/* Waits for the result of the job. */
static bool await_result(struct work *w, struct exchange *e)
{
	ask(w, e, STEP_RESULT, request_job_target(w->job, "/result"));
	e->waits = true;
	e->result = w->output.fd;
	return true;
}

/* Deletes the job, if the image has made one. */
static bool delete_job(struct work *w, struct exchange *e)
{
	if (!w->job || !w->posts)
		return false;
	ask(w, e, STEP_DELETE, request_job_target(w->job, ""));
	e->method = "DELETE";
	e->accepted = 204;
	return true;
}

/* Opens the input, if it is a file. */
static bool open_file(struct batch *b, struct work *w)
{
	const struct task *task = w->task;
	size_t root = b->root ? strlen(b->root) : 0;
	char *path = b->root ? realpath(task->input, NULL) : NULL;
	bool inside = path && !strncmp(path, b->root, root) && path[root] == '/';

	free(path);
	if (inside) {
		work_fail(b, w, task->name, "the file is in the directory of the results");
		return false;
	}
	w->input = inputs_open(task->input, &w->info);
	if (w->input < 0) {
		work_fail(b, w, task->name, interrupt_number() ? NULL : strerror(errno));
		return false;
	}
	if (!w->info.st_size) {
		work_fail(b, w, task->name, "the file is empty");
		return false;
	}
	if (!inputs_is_list(&b->inputs))
		guard_add(&b->inputs.guard, &w->info, task->input);
	return true;
}

/* Tells whether the input is to be filtered and replaced: it has not been yet. */
static bool is_to_be_replaced(struct batch *b, struct work *w)
{
	const struct making making = {w->task->name, &w->info, NULL, w->target, true};
	const struct manifest *manifest = manifest_of(b, w);

	switch (manifest && !b->options->force
	            ? manifest_in_place(manifest, w->task->output, &making)
	            : IN_PLACE_NEW) {
	case IN_PLACE_NEW:
		return true;
	case IN_PLACE_MADE:
		if (b->options->dry_run)
			report_plan(w->task->name, w->task->output, "skip: it is made");
		skip(b, w);
		break;
	case IN_PLACE_CHANGED:
		work_fail(b, w, w->task->name,
		          "it is a result of this command that has been changed since: --force "
		          "filters it again");
		break;
	}
	return false;
}

/* Looks at the input again, now that its temporary file is locked and no other run can replace it:
 * one may have done so meanwhile. */
static bool claim(struct batch *b, struct work *w)
{
	const char *wrong = manifest_refresh(w->record->manifest);

	if (wrong) {
		work_fail(b, w, w->task->output, wrong);
		return false;
	}
	close(w->input);
	return open_file(b, w) && is_to_be_replaced(b, w);
}

/* Prepares the result's place, and asks the service for the result. */
static bool filter(struct batch *b, struct work *w, struct exchange *e)
{
	const struct task *task = w->task;
	int error = 0;
	bool there;

	if (!is_elsewhere(task->output) && is_place_taken(b, w, &there))
		return false;
	if (is_elsewhere(task->output))
		error = (w->output.fd = output_nameless()) < 0 ? errno : 0;
	else
		error = output_open(&w->output, task->output);
	if (error == EBUSY)
		work_fail(b, w, task->output, "another convolve is making it");
	else if (error)
		fail_output(b, w, error);
	if (error)
		return false;
	w->output.differs = b->inputs.in_place;
	if (b->inputs.in_place && !claim(b, w))
		return false;
	return w->job ? await_result(w, e) : post(b, w, e);
}

/* The first step
 * ---------------------------------------------------------------------------------- */

/* Tells whether keys are there, if the image needs any. Without keys, no other image gets
 * further. */
static bool find_keys(struct batch *b, const struct work *w)
{
	if (place_kind(w->task->input) != PLACE_OBJECT &&
	    place_kind(w->task->output) != PLACE_OBJECT)
		return true;
	if (!aws_load(&b->aws))
		return true;
	b->status = EXIT_USAGE;
	b->ended = true;
	return false;
}

static void fail_twice(struct batch *b, struct work *w, const char *other)
{
	char *why = NULL;

	if (asprintf(&why, "%s, too, would become %s", other, w->task->output) < 0)
		abort();
	work_fail(b, w, w->task->name, why);
	free(why);
}

/* Tells whether an image under way has the same result. A name may be twice in a list. */
static bool is_twice(struct batch *b, struct work *w)
{
	const struct work *other = b->works;

	while (other && (other == w || strcmp(other->task->output, w->task->output) != 0))
		other = other->next;
	if (!other)
		return false;
	if (strcmp(other->task->input, w->task->input) != 0 && !b->inputs.in_place)
		fail_twice(b, w, other->task->name);
	else
		skip(b, w);
	return true;
}

/* Tells whether the records lack part of an input's name, so that two inputs may have one name. */
static bool is_hidden(const struct task *task)
{
	return is_elsewhere(task->input) && strcmp(task->input, task->name) != 0;
}

/* Tells whether this run has made the result from another input. */
static bool is_made_from_other(struct batch *b, struct work *w)
{
	char *from = manifest_made_from(manifest_of(b, w), w->task->output);
	char *path = is_elsewhere(w->task->input) ? NULL : realpath(w->task->input, NULL);
	bool other = from && (strcmp(from, path ? path : w->task->name) != 0 || is_hidden(w->task));

	if (other)
		fail_twice(b, w, from);
	free(from);
	free(path);
	return other;
}

/* Goes on after looking for the result; `known`: it is there, made from this input, if that still
 * is the same one. */
static bool go_on(struct batch *b, struct work *w, struct exchange *e, bool known)
{
	if (is_elsewhere(w->task->input)) {
		if (!known) {
			free(w->version);
			w->version = NULL;
		}
		return fetch(b, w, e);
	}
	if (!known)
		return filter(b, w, e);
	skip(b, w);
	return false;
}

/* Prints the fate of an image. */
static void plan(struct batch *b, struct work *w, bool known)
{
	const struct task *task = w->task;
	bool object = is_elsewhere(task->output), there = false;

	if (known && !is_elsewhere(task->input)) {
		report_plan(task->name, task->output, "skip: it is made");
		skip(b, w);
	} else if (known) {
		report_plan(task->name, task->output, "make again if the input has changed");
	} else if (object || !is_place_taken(b, w, &there)) {
		report_plan(task->name, task->output,
		            there                          ? "replace"
		            : object && !b->options->force ? "make, if the store does not have it"
		                                           : "make");
	}
}

/* Opens the record of the directory, if the result lies beside its input or replaces it. */
static bool find_record(struct batch *b, struct work *w)
{
	if (!inputs_are_beside(&b->inputs) || is_elsewhere(w->task->output))
		return true;
	w->record = records_use(&b->records, w->task->output, b->run, b->options->dry_run);
	if (w->record->failed)
		work_fail(b, w, w->task->name, NULL);
	return !w->record->failed;
}

/* Tells whether the input is a file that can be replaced. */
static bool is_replaceable(struct batch *b, struct work *w)
{
	struct stat info;
	const char *why = in_place_check_file(w->task->output, b->options->force, &info);

	if (!why && b->mask.name && guard_find(&b->inputs.guard, &info) == b->mask.name)
		why = "it is the mask, which --in-place does not replace";
	if (why)
		work_fail(b, w, w->task->name, why);
	return !why;
}

bool work_start(struct batch *b, struct work *w, struct exchange *e)
{
	const struct task *task = w->task;
	bool known = false, list = inputs_is_list(&b->inputs), dry = b->options->dry_run;
	struct making making;
	struct stat result;

	if (task->wrong)
		work_fail(b, w, task->name, task->wrong);
	if (task->wrong || (list && is_twice(b, w)) || (!dry && !find_keys(b, w)))
		return false;
	if (manifest_is_place(task->output)) {
		work_fail(b, w, task->output, "the name is that of the record of results");
		return false;
	}
	if (!strcmp(task->input, task->output) && is_elsewhere(task->input)) {
		work_fail(b, w, task->name, "the result would overwrite it: choose another output");
		return false;
	}
	if (b->inputs.in_place && !is_replaceable(b, w))
		return false;
	if (b->inputs.are_jobs) {
		w->job = strdup(task->input);
		w->target = request_job_target(task->input, "/result");
	} else {
		w->target = request_target(b->options, &b->mask, task->output);
	}
	if (!w->job && !is_elsewhere(task->input) && !(dry && !strcmp(task->input, "-")) &&
	    !open_file(b, w))
		return false;
	if (!find_record(b, w) || (b->inputs.in_place && !is_to_be_replaced(b, w)))
		return false;
	if (place_kind(task->output) == PLACE_OBJECT && !b->options->force && !dry) {
		ask_elsewhere(b, w, e, STEP_LOOK, task->output);
		return true;
	}
	making = (struct making){.input = task->name, .request = w->target};
	making.info = w->input >= 0 ? &w->info : NULL;
	if (manifest_of(b, w) && !b->options->force && !b->inputs.in_place)
		known =
		    manifest_has(manifest_of(b, w), task->output, &making, &result, &w->version);
	if (known && !list)
		guard_add(&b->inputs.guard, &result, task->output);
	if (dry) {
		plan(b, w, known);
		return false;
	}
	if ((!known || is_hidden(task)) && list && !b->inputs.in_place && manifest_of(b, w) &&
	    is_made_from_other(b, w))
		return false;
	return go_on(b, w, e, known);
}

/* The steps after it
 * ------------------------------------------------------------------------------ */

/* Prints the headers in which the service describes a result. */
static void print_facts(const struct exchange *e, const struct task *task)
{
	struct curl_header *h = NULL;

	report_remark("%s -> %s", task->name, task->output);
	while ((h = curl_easy_nextheader(e->easy, CURLH_HEADER, -1, h)))
		if (!strncasecmp(h->name, "X-", 2) || !strcasecmp(h->name, "Server-Timing"))
			report_remark("  %s: %s", h->name, h->value);
}

bool work_sync_directory(struct batch *b, char *next)
{
	int error;

	if (b->unsynced && next && !strcmp(b->unsynced, next)) {
		free(next);
		return true;
	}
	error = b->unsynced ? output_sync_directory(b->unsynced) : 0;
	if (error) {
		report_error("%s: %s", b->unsynced, strerror(error));
		b->status = EXIT_SOME_FAILED;
	}
	free(b->unsynced);
	b->unsynced = next;
	return !error;
}

/* Records the result; one that replaces its input is not made without that. */
static bool record_result(struct batch *b, struct work *w, const struct stat *result)
{
	const struct making making = {w->task->name, &w->info, w->version, w->target,
	                              b->inputs.in_place};
	struct manifest *manifest = manifest_of(b, w);
	const char *wrong =
	    manifest ? manifest_add(manifest, w->task->output, &making, result) : NULL;

	if (wrong && b->inputs.in_place)
		work_fail(b, w, w->task->output, wrong);
	else if (wrong)
		report_remark("%s will be made again next time: cannot write the manifest: %s",
		              w->task->output, wrong);
	return !wrong || !b->inputs.in_place;
}

/* Moves the result to its place, unless the file there has changed since it was looked at. The
 * record comes first, so that a run that is killed leaves no unknown result; but for a result that
 * replaces another one, which is known until then. */
static bool place_result(struct batch *b, struct work *w)
{
	struct stat result;
	char *directory = output_directory(&w->output);
	int error = output_finish(&w->output, &result);
	bool there = false, late;

	if (error || !directory) {
		if (error)
			fail_output(b, w, error);
		free(directory);
		return !error;
	}
	if (is_place_taken(b, w, &there)) {
		free(directory);
		return false;
	}
	late = there && !b->inputs.in_place;
	/* The place is looked at again, since recording takes a while. */
	if (!late && (!record_result(b, w, &result) || is_place_taken(b, w, &there))) {
		free(directory);
		return false;
	}
	error = output_take_place(&w->output, there);
	if (error) {
		fail_output(b, w, error);
		free(directory);
		return false;
	}
	if (!inputs_is_list(&b->inputs))
		guard_add(&b->inputs.guard, &result, w->task->output);
	work_sync_directory(b, directory);
	if (late)
		record_result(b, w, &result);
	return true;
}

static void count_done(struct batch *b, struct work *w)
{
	b->progress.done++;
	b->progress.bytes_done += (uint64_t)w->task->size;
	b->progress.bytes_read += (uint64_t)w->info.st_size;
}

/* Keeps the result as a file; false if it may be lost. */
static bool keep_result(struct batch *b, struct work *w, const struct exchange *e)
{
	if (!place_result(b, w))
		return false;
	count_done(b, w);
	if (b->options->verbose)
		print_facts(e, w->task);
	return !w->job || work_sync_directory(b, NULL);
}

static void set_condition(struct work *w, const char *name, const char *tag)
{
	free(w->condition);
	if (asprintf(&w->condition, "%s: %s", name, tag) < 0)
		abort();
}

/* Goes on with the store's answer about the result's place. */
static bool take_look(struct batch *b, struct work *w, struct exchange *e)
{
	const char *made = exchange_header(e, META_MADE), *run = exchange_header(e, META_RUN);
	const char *source = exchange_header(e, META_SOURCE);
	const char *tag = exchange_header(e, "ETag");
	char ours[HASH_DIGITS];
	bool known;

	if (e->status == 404 && w->refused) {
		work_fail(b, w, w->task->output, "the object there has been removed meanwhile");
		return false;
	}
	if (e->status == 404) {
		set_condition(w, "If-None-Match", "*");
		return go_on(b, w, e, false);
	}
	describe_making(w, ours);
	known = made && !strcmp(made, ours);
	/* An answer was lost, and the request was repeated. */
	if (w->refused && known && run && !strcmp(run, b->run)) {
		count_done(b, w);
		return delete_job(w, e);
	}
	if (w->refused) {
		work_fail(b, w, w->task->output, "an object has been written there meanwhile");
		return false;
	}
	if (!made || (!known && run && !strcmp(run, b->run))) {
		work_fail(b, w, w->task->output,
		          made ? "another result of this batch is there"
		               : "the object is not a result of this command: --force replaces it");
		return false;
	}
	if (source && !(w->version = strdup(source)))
		abort();
	if (tag)
		set_condition(w, "If-Match", tag);
	return go_on(b, w, e, known);
}

/* Goes on with a copy of the input. */
static bool take_copy(struct batch *b, struct work *w, struct exchange *e)
{
	if (e->status == 304 && !w->version) {
		work_fail(b, w, w->task->name, "status 304, although no version was named");
		return false;
	}
	if (e->status == 304) {
		skip(b, w);
		return false;
	}
	free(w->version);
	w->version = store_version(e);
	if (!fstat(w->input, &w->info))
		return filter(b, w, e);
	work_fail(b, w, w->task->name, strerror(errno));
	return false;
}

/* Goes on with the job that the service has made of the image. */
static bool take_job(struct batch *b, struct work *w, struct exchange *e)
{
	free(w->job);
	w->job = request_job(e);
	if (w->job)
		return await_result(w, e);
	work_fail(b, w, w->task->name, "the answer names no job");
	return false;
}

/* Gives the result of a job in a directory the suffix of its format. */
static void add_suffix(struct batch *b, struct work *w, const char *type)
{
	const enum format format = format_parse_media_type(type);
	char *place = NULL;

	if (!b->inputs.are_jobs || !b->inputs.directory || format == FORMAT_NONE)
		return;
	if (asprintf(&place, "%s.%s", w->task->output, format_naming(format)->name) < 0)
		abort();
	free(w->task->output);
	w->task->output = place;
	output_rename(&w->output, place);
}

/* Tells whether the result is an image of the format that the name of its place says. */
static bool fits_place(struct batch *b, struct work *w, const char *type)
{
	char *why = NULL;

	if (!b->inputs.in_place || in_place_fits(w->task->output, type))
		return true;
	if (asprintf(&why,
	             "the result is of the type %s, and its name says another: choose another "
	             "output",
	             type) < 0)
		abort();
	work_fail(b, w, w->task->name, why);
	free(why);
	return false;
}

static bool take_result(struct batch *b, struct work *w, struct exchange *e)
{
	if (!fits_place(b, w, exchange_header(e, "Content-Type")))
		return false;
	if (!is_elsewhere(w->task->output)) {
		add_suffix(b, w, exchange_header(e, "Content-Type"));
		return keep_result(b, w, e) && delete_job(w, e);
	}
	if (b->options->verbose)
		print_facts(e, w->task);
	w->type = strdup(exchange_header(e, "Content-Type"));
	if (!w->type)
		abort();
	return store(b, w, e);
}

/* Goes on with the end of a job: the result, the problem of the image, or nothing. A problem goes
 * with its job, as the next run may have better luck. */
static bool take_end(struct batch *b, struct work *w, struct exchange *e)
{
	if (e->outcome == OUTCOME_DONE)
		return take_result(b, w, e);
	w->gone = e->outcome == OUTCOME_GONE && w->posts && w->posts <= b->options->retries;
	if (!w->gone)
		work_fail(b, w, w->task->name, e->text);
	if (e->wrong && !b->inputs.are_jobs) {
		b->status = EXIT_USAGE;
		b->ended = true;
	}
	return delete_job(w, e);
}

static bool take_deletion(struct batch *b, struct work *w, struct exchange *e)
{
	if (w->gone) {
		w->gone = false;
		return post(b, w, e);
	}
	if (e->outcome != OUTCOME_DONE && e->status != 404)
		report_remark("%s: the service still has its job %s: %s", w->task->name, w->job,
		              e->text);
	return false;
}

bool work_goes_on(const struct work *w, const struct exchange *e)
{
	return e->outcome == OUTCOME_DONE || e->outcome == OUTCOME_ENDED ||
	       e->outcome == OUTCOME_GONE ||
	       (w->step == STEP_DELETE && e->outcome != OUTCOME_GIVEN_UP);
}

bool work_take(struct batch *b, struct work *w, struct exchange *e)
{
	switch (w->step) {
	case STEP_LOOK:
		return take_look(b, w, e);
	case STEP_FETCH:
		return take_copy(b, w, e);
	case STEP_FILTER:
		return e->status == 202 ? take_job(b, w, e) : take_result(b, w, e);
	case STEP_RESULT:
		return take_end(b, w, e);
	case STEP_STORE:
		w->refused = e->status == 412;
		if (w->refused) {
			ask_elsewhere(b, w, e, STEP_LOOK, w->task->output);
			return true;
		}
		count_done(b, w);
		return delete_job(w, e);
	case STEP_DELETE:
		return take_deletion(b, w, e);
	}
	return false;
}
