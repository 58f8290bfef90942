/* Lists jobs, waits for them, fetches their results and deletes them. */
#include "client/jobs.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/batch.h"
#include "client/interrupt.h"
#include "client/report.h"
#include "client/request.h"
#include "client/transfer.h"
#include "client/views.h"

/* Waits until a job has ended, and prints how. */
static enum exit_code wait_for(const struct options *options, const struct server *server,
                               const char *id)
{
	json_t *job = NULL;
	enum exit_code status = views_await_job(server, id, &job);
	const json_t *problem = json_object_get(job, "problem");

	if (!status && strcmp(views_text(job, "state"), "done") != 0)
		status = EXIT_SOME_FAILED;
	if (job && options->json)
		views_dump(job);
	else if (job)
		printf("%s %s%s%s\n", id, views_text(job, "state"), problem ? ": " : "",
		       problem ? views_text(problem, "title") : "");
	json_decref(job);
	return status;
}

static enum exit_code delete_one(const struct options *options, const struct server *server,
                                 const char *id)
{
	char *target = request_job_target(id, ""), *text = NULL;
	const struct exchange request = {
	    .target = target, .method = "DELETE", .accepted = 204, .body = -1, .result = -1};
	enum exit_code status = transfer_ask(server, &request, id, &text);

	(void)options;
	free(target);
	free(text);
	return status;
}

static const struct verb {
	const char *name;
	/* NULL: all of them at once, as a batch */
	enum exit_code (*run)(const struct options *options, const struct server *server,
	                      const char *id);
} verbs[] = {{"wait", wait_for}, {"fetch", NULL}, {"delete", delete_one}};

static enum exit_code run_each(const struct verb *verb, const struct options *options,
                               const struct server *server)
{
	enum exit_code status = EXIT_DONE;

	for (size_t i = 0;
	     i < options->operand_count && status != EXIT_UNREACHABLE && !interrupt_number(); i++) {
		enum exit_code one = verb->run(options, server, options->operands[i]);

		status = one > status ? one : status;
	}
	return status;
}

enum exit_code jobs_run(const struct options *options, const struct server *server)
{
	const struct verb *verb = verbs, *end = verbs + sizeof verbs / sizeof *verbs;
	struct options of_verb = *options;

	if (!options->operand_count)
		return views_jobs(options, server);
	while (verb < end && strcmp(verb->name, options->operands[0]) != 0)
		verb++;
	of_verb.operands++;
	of_verb.operand_count--;
	if (verb == end || !of_verb.operand_count) {
		report_error("jobs %s: expected wait, fetch or delete, with ids of jobs",
		             options->operands[0]);
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < of_verb.operand_count; i++)
		if (!request_is_job(of_verb.operands[i])) {
			report_error("%s is not the id of a job", of_verb.operands[i]);
			return EXIT_USAGE;
		}
	return verb->run ? run_each(verb, &of_verb, server) : batch_run(&of_verb, server);
}
