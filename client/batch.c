/* Takes the inputs one after another, as the loop of transfers asks for them. */
#include "client/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/interrupt.h"
#include "client/place.h"
#include "client/transfer.h"
#include "client/views.h"
#include "client/work.h"

enum { SAVE_SECONDS = 5 };

/* True if the journal says that the name is to be done, or there is none. */
static bool ask_journal(struct batch *b, const struct task *task)
{
	enum journal_advice advice = JOURNAL_DO;

	if (b->journal)
		advice = journal_ask(b->journal, task->number, b->inputs.list.names, task->input);
	if (advice == JOURNAL_SKIP)
		b->progress.skipped++;
	if (advice == JOURNAL_OTHER_LIST) {
		report_error("%s: the list is not the one that this journal is about: choose "
		             "another name, or remove it",
		             b->options->resume);
		journal_close(b->journal); /* it stays as it is */
		b->journal = NULL;
		b->status = EXIT_USAGE;
		b->ended = true;
	}
	return advice == JOURNAL_DO;
}

/* There are no further inputs. */
static void end_list(struct batch *b)
{
	const struct list *list = &b->inputs.list;

	if (list->error) {
		report_error("%s: %s", b->options->files_from,
		             list->error == EMSGSIZE ? "a name is longer than 64 KiB; is this a "
		                                       "list of names?"
		                                     : strerror(list->error));
		b->status = EXIT_SOME_FAILED;
	} else if (b->journal && !journal_may_end(b->journal, list->count)) {
		report_error("%s: the list is shorter than what was done of it before",
		             b->options->resume);
		b->status = EXIT_USAGE;
	}
	b->ended = true;
}

static enum supply next_image(void *context, struct exchange *e)
{
	struct batch *b = context;
	double until = report_now() + 0.05;

	while (!b->ended && !b->full && !interrupt_number()) {
		struct task *task;
		struct work *w;
		enum supply supply = inputs_next(&b->inputs, &task);

		if (supply == SUPPLY_END && inputs_is_list(&b->inputs))
			end_list(b);
		if (supply != SUPPLY_READY)
			return supply;
		report_progress(&b->progress);
		if (!ask_journal(b, task)) {
			inputs_release(&b->inputs, task);
		} else {
			w = work_new(b, task);
			e->owner = w;
			if (work_start(b, w, e))
				return SUPPLY_READY;
			work_free(b, w);
		}
		if (report_now() > until)
			return SUPPLY_SOON;
	}
	return SUPPLY_END;
}

static enum supply image_done(void *context, struct exchange *e)
{
	struct batch *b = context;
	struct work *w = e->owner;
	enum outcome outcome = e->outcome;
	bool at_result = w->step == STEP_LOOK || w->step == STEP_STORE;

	if (outcome == OUTCOME_DONE && work_take(b, w, e))
		return SUPPLY_READY;
	if (outcome == OUTCOME_UNREACHABLE)
		report_error("%s", e->text);
	else if (outcome != OUTCOME_DONE && outcome != OUTCOME_GIVEN_UP)
		work_fail(b, w, at_result ? w->task->output : w->task->name, e->text);
	if (outcome == OUTCOME_UNREACHABLE)
		b->status = EXIT_UNREACHABLE;
	if (outcome == OUTCOME_WRONG)
		b->status = EXIT_USAGE;
	b->full |= e->failure == ENOSPC || e->failure == EDQUOT;
	work_free(b, w);
	return outcome != OUTCOME_UNREACHABLE && outcome != OUTCOME_REFUSED &&
	               outcome != OUTCOME_WRONG && !b->full
	           ? SUPPLY_SOON
	           : SUPPLY_END;
}

/* The batch
 * --------------------------------------------------------------------------------------- */

/* Writes the journal: all names before the first one that is under way, or was given up, are
 * noted. Their results are on the disk first. */
static void save_journal(struct batch *b)
{
	uint64_t done = b->inputs.list.count;
	hash names = b->inputs.list.names;
	const char *wrong;

	b->saved = report_now();
	work_sync_directory(b, NULL);
	for (const struct work *w = b->works; w; w = w->next)
		if (w->task->number <= done) {
			done = w->task->number - 1;
			names = w->task->before;
		}
	if (b->given_up && b->given_up <= done) {
		done = b->given_up - 1;
		names = b->before_given_up;
	}
	wrong = journal_save(b->journal, done, names);
	if (!wrong)
		return;
	report_error("%s: %s", b->options->resume, wrong);
	b->status = EXIT_SOME_FAILED;
	b->ended = true;
}

static void tick(void *context)
{
	struct batch *b = context;

	report_progress(&b->progress);
	if (b->journal && report_now() > b->saved + SAVE_SECONDS)
		save_journal(b);
}

/* Opens the records of results and of progress. */
static enum exit_code open_records(struct batch *b)
{
	const char *directory = b->inputs.directory;
	bool objects = directory && place_kind(directory) == PLACE_OBJECT;
	bool list = inputs_is_list(&b->inputs);
	char *target, *command = NULL;

	b->looks = objects && b->inputs.several && !b->options->force;
	if (b->inputs.several && !objects && (list || b->inputs.count)) {
		b->manifest = manifest_open(directory, b->run);
		if (!b->manifest)
			return EXIT_SOME_FAILED;
		b->root = list ? realpath(directory, NULL) : NULL;
	}
	if (!b->options->resume)
		return EXIT_DONE;
	target = work_target(b->options, "");
	if (asprintf(&command, "%s %s", target, directory) < 0)
		abort();
	b->journal = journal_open(b->options->resume, command);
	free(command);
	free(target);
	return b->journal ? EXIT_DONE : EXIT_USAGE;
}

static void name_run(struct batch *b)
{
	unsigned char bytes[(RUN_DIGITS - 1) / 2];

	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		abort();
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(b->run + 2 * i, 3, "%02x", bytes[i]);
}

static enum exit_code run(struct batch *b, const struct server *server)
{
	const struct transfers transfers = {next_image, image_done, tick, b, b->inputs.list.fd};
	bool list = inputs_is_list(&b->inputs);
	enum exit_code status;

	name_run(b);
	status = open_records(b);
	if (status)
		return status;
	b->status = b->inputs.failed ? EXIT_SOME_FAILED : EXIT_DONE;
	b->progress = (struct progress){.count = list ? PROGRESS_ENDLESS : b->inputs.count,
	                                .since = report_now()};
	b->saved = b->progress.since;
	for (size_t i = 0; i < b->inputs.count; i++)
		b->progress.bytes += (uint64_t)b->inputs.tasks[i].size;
	transfer_run(server, b->options->jobs, &transfers);
	work_sync_directory(b, NULL);
	if (b->journal)
		save_journal(b);
	report_summary(&b->progress);
	return b->status;
}

enum exit_code batch_run(const struct options *options, const struct server *server)
{
	struct batch b = {.options = options, .inputs.list.fd = -1};
	enum exit_code status = views_check_parameters(options, server);

	if (!status)
		status = inputs_find(&b.inputs, options);
	if (!status)
		status = run(&b, server);
	manifest_close(b.manifest);
	journal_close(b.journal);
	if (b.has_aws)
		aws_fini(&b.aws);
	free(b.root);
	inputs_fini(&b.inputs);
	return status;
}
