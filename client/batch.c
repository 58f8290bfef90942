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
		w = work_new(b, task);
		e->owner = w;
		if (work_start(b, w, e))
			return SUPPLY_READY;
		work_free(b, w);
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

	if (work_goes_on(w, e)) {
		if (work_take(b, w, e))
			return SUPPLY_READY;
		work_free(b, w);
		return b->full ? SUPPLY_END : SUPPLY_SOON;
	}
	if (outcome == OUTCOME_UNREACHABLE)
		report_error("%s", e->text);
	else if (outcome != OUTCOME_GIVEN_UP)
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

static void tick(void *context)
{
	struct batch *b = context;

	report_progress(&b->progress);
}

/* Opens the record of results. */
static enum exit_code open_records(struct batch *b)
{
	const char *directory = b->inputs.directory;
	bool objects = directory && place_kind(directory) == PLACE_OBJECT;
	bool list = inputs_is_list(&b->inputs);

	if (directory && !objects && !b->inputs.are_jobs && (list || b->inputs.count) &&
	    (!b->options->dry_run || manifest_exists(directory))) {
		b->manifest = manifest_open(directory, b->run);
		if (!b->manifest)
			return EXIT_SOME_FAILED;
		b->root = list ? realpath(directory, NULL) : NULL;
	}
	return EXIT_DONE;
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
	                                .left_out = b->inputs.left_out,
	                                .since = report_now()};
	for (size_t i = 0; i < b->inputs.count; i++)
		b->progress.bytes += (uint64_t)b->inputs.tasks[i].size;
	transfer_run(server, b->options->jobs, &transfers);
	work_sync_directory(b, NULL);
	inputs_remark(&b->inputs);
	if (!b->options->dry_run)
		report_summary(&b->progress);
	return b->status;
}

enum exit_code batch_run(const struct options *options, const struct server *server)
{
	struct batch b = {
	    .options = options, .inputs.list.fd = -1, .aws.pays = options->requester_pays};
	enum exit_code status = mask_open(&b.mask, options);

	if (!status && !options->dry_run)
		status = views_check_parameters(options, server);
	if (!status)
		status = inputs_find(&b.inputs, options, &b.mask, server, &b.aws);
	if (!status)
		status = run(&b, server);
	manifest_close(b.manifest);
	records_close(&b.records);
	aws_fini(&b.aws);
	free(b.root);
	inputs_fini(&b.inputs);
	mask_close(&b.mask);
	return status;
}
