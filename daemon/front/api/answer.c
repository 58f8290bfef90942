/* Answers: problems, JSON, and the results of jobs with their headers. */
#include "front/api/answer.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "front/jobs/admission.h"
#include "front/workers/device_table.h"

void answer_text(struct answer *answer, int status, const char *content_type, char *text,
                 size_t size)
{
	answer->status = text ? status : 500;
	answer->content_type = content_type;
	answer->failed |= !text;
	answer_piece(answer, text, size);
}

void answer_json(struct answer *answer, int status, json_t *value)
{
	char *json = json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(9)), *text = NULL;
	int size = json ? asprintf(&text, "%s\n", json) : -1;

	free(json);
	json_decref(value);
	answer_text(answer, status, "application/json", size < 0 ? NULL : text, (size_t)size);
}

/* A string that need not be UTF-8, or was cut in the middle of a character. */
static json_t *json_text(const char *text)
{
	char *valid = g_utf8_make_valid(text, -1);
	json_t *json = json_string(valid);

	g_free(valid);
	return json;
}

json_t *answer_describe_problem(enum error error, const struct problem *problem)
{
	const bool detailed = problem && *problem->detail, named = problem && *problem->parameter;

	return json_pack("{s:o, s:s, s:i, s:o*, s:o*, s:o*}", "type",
	                 json_sprintf("/problems/%s", error_row(error)->slug), "title",
	                 error_row(error)->title, "status", error_row(error)->status, "detail",
	                 detailed ? json_text(problem->detail) : NULL, "parameter",
	                 named ? json_text(problem->parameter) : NULL, "value",
	                 named ? json_text(problem->value) : NULL);
}

void answer_problem(struct answer *answer, enum error error, const struct problem *problem)
{
	answer_json(answer, error_row(error)->status, answer_describe_problem(error, problem));
	answer->content_type = "application/problem+json";
	answer->reason = error_row(error)->slug;
	free(answer->detail);
	answer->detail = problem ? strdup(problem->detail) : NULL;
	if (answer->status == 401)
		answer_header(answer, "WWW-Authenticate", "Bearer realm=\"convolved\"%s",
		              error == ERR_TOKEN_UNKNOWN ? ", error=\"invalid_token\"" : "");
	if (answer->status == 429)
		answer_header(answer, "Retry-After", "%u", admission_retry_after());
	else if (answer->status == 503)
		answer_header(answer, "Retry-After", "%u",
		              error == ERR_NO_DEVICE ? devices_next_try() : 1);
}

static void add_time(char *text, size_t size, const char *name, uint64_t ns)
{
	char item[64];

	snprintf(item, sizeof item, "%s;dur=%.3f", name, (double)ns * 1e-6);
	list_add(text, size, item);
}

/* Adds Server-Timing. Stages overlap: their sum may exceed the total, and is no less. */
static void add_timing(struct answer *answer, const struct job *job, uint64_t received_ns)
{
	const struct job_times *t = &job->times;
	char text[(KERNELS + 16) * 48] = "";

	add_time(text, sizeof text, "receive", received_ns);
	add_time(text, sizeof text, "queue", t->queue);
	add_time(text, sizeof text, "decode", t->decode);
	if (t->compile)
		add_time(text, sizeof text, "compile", t->compile);
	add_time(text, sizeof text, "wait", t->wait);
	add_time(text, sizeof text, "upload", t->upload);
	for (enum kernel k = 0; k < KERNELS; k++)
		if (t->kernel[k])
			add_time(text, sizeof text, kernel_name(k), t->kernel[k]);
	if (t->reference)
		add_time(text, sizeof text, "reference", t->reference);
	add_time(text, sizeof text, "download", t->download);
	add_time(text, sizeof text, "encode", t->encode);
	if (t->verify)
		add_time(text, sizeof text, "verify", t->verify);
	add_time(text, sizeof text, "total", received_ns + t->finished - t->accepted);
	answer_header(answer, "Server-Timing", "%s", text);
}

void answer_job(struct answer *answer, const struct job *job, uint64_t received_ns)
{
	char lost[128] = "", devices[256] = "", item[96];
	const char *by[JPEG_SIDES];
	const struct device *d;

	if (job->error) {
		answer_problem(answer, job->error, &job->problem);
	} else {
		answer->status = 200;
		answer->content_type = format_naming(job->format)->media_type;
		answer->file = job->answer.fd;
		answer->file_size = job->answer.size;
		answer_header(answer, "X-Image", "%ux%ux%u:%s", job->result.width,
		              job->result.height, job->result.bands,
		              pixel_type_rows[job->result.type].name);
		if (job->pages > 1)
			answer_header(answer, "X-Pages", "%u", job->pages);
		for (enum loss l = 0; l < LOSSES; l++)
			if (job->lost >> l & 1)
				list_add(lost, sizeof lost, loss_rows[l].token);
		if (*lost)
			answer_header(answer, "X-Lost", "%s", lost);
		for (unsigned i = 0; (d = device_get(i)); i++)
			if (job->devices_used >> i & 1) {
				snprintf(item, sizeof item, "%s (%s)", d->label, d->ready.name);
				list_add(devices, sizeof devices, item);
			}
		if (*devices)
			answer_header(answer, "X-Device", "%s", devices);
		for (enum jpeg_side side = 0; side < JPEG_SIDES; side++)
			by[side] = job->jpeg[side] ? "cpu" : device_get(job->jpeg_device)->label;
		if (!job->jpeg[JPEG_DECODE] == !job->jpeg[JPEG_ENCODE])
			answer_header(answer, "X-Codec", "%s", by[JPEG_DECODE]);
		else
			answer_header(answer, "X-Codec", "decode=%s, encode=%s", by[JPEG_DECODE],
			              by[JPEG_ENCODE]);
	}
	if (job->options.verify && (!job->error || job->verified.mismatches)) {
		answer_header(answer, "X-Verify-Samples", "%" PRIu64, job->verified.samples);
		answer_header(answer, "X-Verify-Max-Difference", "%.9g", job->verified.largest);
		answer_header(answer, "X-Verify-Mismatches", "%" PRIu64, job->verified.mismatches);
	}
	add_timing(answer, job, received_ns);
}
