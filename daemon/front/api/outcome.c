/* The ends of jobs and requests, for operators. One line names the client, the outcome and the cost
 * of each image; spans are for a collector of traces. Texts that do not fit are cut off. */
#include "front/api/outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "base/log.h"
#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/workers/canary.h"
#include "front/workers/device_table.h"
#include "front/workers/tracer.h"

enum { FILTERS_SIZE = 256, IMAGE_SIZE = 48 };

/* Lists the labels of the devices that worked on a job, "gpu0,gpu1". */
static void list_devices(const struct job *job, char *text, size_t room)
{
	const struct device *d;

	*text = '\0';
	for (unsigned i = 0; (d = device_get(i)); i++)
		if (job->devices_used >> i & 1) {
			const size_t used = strlen(text);

			snprintf(text + used, room - used, "%s%s", used ? "," : "", d->label);
		}
}

/* Lists a job's filters in their order, "gaussian,luma:sobel". */
static void list_filters(const struct job *job, char *text, size_t room)
{
	const struct chain *chain = job->asked ? job->asked->chain : NULL;

	*text = '\0';
	for (uint32_t i = 0; chain && i < chain->count; i++) {
		const struct filter_call *call = &chain->call[i];
		const size_t used = strlen(text);

		snprintf(text + used, room - used, "%s%s%s%s", i ? "," : "",
		         call->channels ? channel_names[call->channels] : "",
		         call->channels ? ":" : "", known_filters[call->filter].name);
	}
}

/* Describes the decoded image, as far as it is known, "640x480x3:u8". */
static void describe_image(const struct job *job, char *text, size_t room)
{
	const struct image *image = &job->whole;

	*text = '\0';
	if (job->image_known)
		snprintf(text, room, "%ux%ux%u:%s", image->width, image->height, image->bands,
		         pixel_type_rows[image->type].name);
}

/* Logs a job; `end` is the predicate of the line, such as "is done". */
static void log_job(const char *id, const struct job *job, const char *end, enum log_level level)
{
	uint64_t us =
	    ((job->finished ? job->times.finished : loop_now()) - job->times.accepted) / 1000;
	char devices[256], span[TRACE_TEXT_SIZE], filters[FILTERS_SIZE], image[IMAGE_SIZE];
	const char *format = job->image_known ? format_naming(job->input_format)->name : "";
	const struct error_row *error = error_row(job->error);

	list_devices(job, devices, sizeof devices);
	describe_image(job, image, sizeof image);
	list_filters(job, filters, sizeof filters);
	log_event(level,
	          LOG_FIELDS(.job = job->id, .request = id, .route = job->terms.route,
	                     .client = job->terms.client, .filters = filters, .format = format,
	                     .image = image, .bytes_in = job->options.body_size,
	                     .bytes_out = job->answer_size, .duration_us = us, .device = devices,
	                     .tiles = job_tiles_done(job), .status = (uint64_t)error->status,
	                     .error = job->error ? error->slug : NULL, .trace = job->terms.trace.id,
	                     .span = trace_span(&job->terms.trace)),
	          "request %s%s: job %" PRIu64
	          " %s after %.3f ms%s%s, for %s: %s of %s%s%s, %" PRIu64 " bytes in, %" PRIu64
	          " out%s%s",
	          id, trace_text(&job->terms.trace, span), job->id, end, (double)us * 1e-3,
	          *devices ? " on " : "", devices, job->terms.client, filters,
	          job->image_known ? format : "no known image", *image ? " " : "", image,
	          job->options.body_size, job->answer_size, job->error ? ": " : "",
	          job->error ? job->problem.detail : "");
}

/* Stages that the job did not have, such as transfers in shared memory, are not counted. */
static void observe_stages(const struct job *job)
{
	const struct job_times *t = &job->times;
	uint64_t filter = t->reference;

	for (enum kernel k = 0; k < KERNELS; k++)
		filter += t->kernel[k];
	const struct {
		const char *name;
		uint64_t ns;
	} stages[] = {{"queue", t->queue},       {"decode", t->decode}, {"compile", t->compile},
	              {"wait", t->wait},         {"upload", t->upload}, {"filter", filter},
	              {"download", t->download}, {"encode", t->encode}, {"verify", t->verify}};

	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		if (stages[i].ns)
			metric_observe(METRIC_STAGE_DURATION, stages[i].name, NULL, stages[i].ns,
			               trace_exemplar(&job->terms.trace));
}

/* Sends the spans of a job's stages, partly at approximate times. Encoding and comparing were at
 * the end of the (last) run, decoding at its beginning, compilation at the end of the wait for a
 * program; all other waits lie together before encoding. In between, they overlap. */
static void send_stages(const struct job *job)
{
	const struct job_times *t = &job->times;
	const uint64_t encoding = t->finished - t->encode;
	const struct {
		const char *name;
		uint64_t start, end;
	} stages[] = {
	    {"queue", t->accepted, t->accepted + t->queue},
	    {"decode", t->began, t->began + t->decode},
	    {"compile", job->tiles_waited - t->compile, job->tiles_waited},
	    {"wait", MAX(t->began, encoding - t->wait), encoding},
	    {"verify", t->finished - t->verify, t->finished},
	    {"encode", encoding, t->finished},
	};

	if (!*job->terms.trace.span)
		return;
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
		struct span span;

		if (stages[i].end <= stages[i].start)
			continue;
		span =
		    tracer_part(&job->terms.trace, stages[i].name, stages[i].start, stages[i].end);
		span.number[SPAN_JOB] = job->id;
		tracer_send(&span);
	}
}

void outcome_record(const char *id, const struct job *job)
{
	const struct error_row *error = error_row(job->error);
	char end[64] = "is done";

	if (job->error)
		snprintf(end, sizeof end, "has failed: %s", error->slug);
	log_job(id, job, end, error->status >= 500 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO);
	send_stages(job);
	if (job->error) {
		metric_add(METRIC_JOBS_FAILED, error->slug, NULL, 1);
		return;
	}
	canary_success();
	observe_stages(job);
	if (job->input_format == FORMAT_JPEG)
		metric_add(METRIC_JPEG_SIDES, "decode", jpeg_reason_slugs[job->jpeg[JPEG_DECODE]],
		           1);
	if (job->format == FORMAT_JPEG)
		metric_add(METRIC_JPEG_SIDES, "encode", jpeg_reason_slugs[job->jpeg[JPEG_ENCODE]],
		           1);
}

void outcome_gone(const char *id, const struct job *job)
{
	log_job(id, job, "is given up, as the client has gone,", LOG_LEVEL_INFO);
	metric_add(METRIC_JOBS_FAILED, "client-gone", NULL, 1);
}

static void send_span(const struct request *r)
{
	const struct trace *trace = &r->terms.trace;
	const struct job *job = r->job;
	struct span span;

	if (!*trace->span)
		return;
	span = tracer_part(trace, "request", r->arrived, loop_now());
	memcpy(span.id, trace->span, sizeof span.id);
	memcpy(span.parent, trace->parent, sizeof span.parent);
	span.server = 1;
	span.failed = r->answer.status >= 500;
	span.number[SPAN_STATUS] = (uint64_t)r->answer.status;
	snprintf(span.text[SPAN_METHOD], SPAN_TEXT_SIZE, "%s", r->method);
	snprintf(span.text[SPAN_ROUTE], SPAN_TEXT_SIZE, "%s", r->route->path);
	snprintf(span.text[SPAN_CLIENT], SPAN_TEXT_SIZE, "%s", r->terms.client);
	snprintf(span.text[SPAN_REQUEST], SPAN_TEXT_SIZE, "%s", r->id);
	if (r->answer.reason)
		snprintf(span.text[SPAN_ERROR], SPAN_TEXT_SIZE, "%s", r->answer.reason);
	if (job) {
		span.number[SPAN_JOB] = job->id;
		span.number[SPAN_TILES] = job_tiles_done(job);
		span.number[SPAN_BODY] = job->options.body_size;
		list_filters(job, span.text[SPAN_FILTERS], SPAN_TEXT_SIZE);
		describe_image(job, span.text[SPAN_IMAGE], SPAN_TEXT_SIZE);
		list_devices(job, span.text[SPAN_DEVICE], SPAN_TEXT_SIZE);
		if (job->image_known)
			snprintf(span.text[SPAN_FORMAT], SPAN_TEXT_SIZE, "%s",
			         format_naming(job->input_format)->name);
		if (job->finished)
			span.number[SPAN_ANSWER] = job->answer_size;
	}
	tracer_send(&span);
}

/* Refusals ------------------------------------------------------------------------------------- */

enum { PERIOD_S = 60, ROWS = 256 };

struct row {
	char client[FAIR_CLIENT_SIZE];
	char reason[32];
	enum log_level level;
	unsigned long long untold; /* since its last line */
};

/* Refusals by clients and reasons; rows that were quiet for a whole period are removed. When the
 * table is full, the last row counts all others. */
static struct row rows[ROWS + 1];
static unsigned used;
static struct loop_timer period;

static void tell_count(struct row *row)
{
	if (row->untold && *row->client)
		log_event(row->level, LOG_FIELDS(.client = row->client, .error = row->reason),
		          "%llu more of %s were refused: %s", row->untold, row->client,
		          row->reason);
	else if (row->untold)
		log_event(row->level, NULL, "%llu more of other clients were refused", row->untold);
	row->untold = 0;
}

void outcome_tell_refusals(void)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < used; i++) {
		if (!rows[i].untold)
			continue;
		tell_count(&rows[i]);
		rows[kept++] = rows[i];
	}
	used = kept;
	tell_count(&rows[ROWS]);
}

static void end_period(void *)
{
	outcome_tell_refusals();
	if (used)
		loop_timer_start(&period, PERIOD_S * 1000);
}

/* Counts a refusal, and logs it unless a similar one was logged just before. */
static void note_refusal(const struct request *r)
{
	const char *route = r->route ? r->route->path : r->method ? "none" : NULL;
	const char *detail = r->answer.detail ? r->answer.detail : "";
	const char *method = r->method ? r->method : "", *path = r->path ? r->path : "";
	char span[TRACE_TEXT_SIZE];
	struct row *row = rows;

	metric_add(METRIC_REQUESTS_REJECTED, r->answer.reason, NULL, 1);
	while (row < rows + used &&
	       (strcmp(row->client, r->terms.client) || strcmp(row->reason, r->answer.reason)))
		row++;
	if (row == rows + ROWS)
		row->level = LOG_LEVEL_INFO;
	if (row < rows + used || row == rows + ROWS) {
		row->untold++;
		return;
	}
	*row = (struct row){.level = r->answer.status >= 500 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO};
	snprintf(row->client, sizeof row->client, "%s", r->terms.client);
	snprintf(row->reason, sizeof row->reason, "%s", r->answer.reason);
	used++;
	log_event(row->level,
	          LOG_FIELDS(.client = r->terms.client, .error = r->answer.reason, .request = r->id,
	                     .route = route, .status = (uint64_t)r->answer.status,
	                     .trace = r->terms.trace.id, .span = trace_span(&r->terms.trace)),
	          "request %s%s%s%s%s%.200s refused to %s: %s%s%s", r->id,
	          trace_text(&r->terms.trace, span), *method ? ": " : "", method, *path ? " " : "",
	          path, r->terms.client, r->answer.reason, *detail ? ": " : "", detail);
	if (!loop_timer_left(&period))
		loop_timer_start(&period, PERIOD_S * 1000);
}

void outcome_answered(const struct request *r)
{
	const char *route = r->route ? r->route->path : "none";
	uint64_t ns = loop_now() - r->arrived;
	char code[8], span[TRACE_TEXT_SIZE];

	if (r->method) {
		snprintf(code, sizeof code, "%d", r->answer.status);
		metric_observe(METRIC_REQUEST_DURATION, route, code, ns,
		               trace_exemplar(&r->terms.trace));
		log_event(LOG_LEVEL_DEBUG,
		          LOG_FIELDS(.request = r->id, .client = r->terms.client, .route = route,
		                     .status = (uint64_t)r->answer.status,
		                     .error = r->answer.reason, .duration_us = ns / 1000,
		                     .trace = r->terms.trace.id,
		                     .span = trace_span(&r->terms.trace)),
		          "request %s%s: %s %s: %d after %.3f ms", r->id,
		          trace_text(&r->terms.trace, span), r->method, r->path, r->answer.status,
		          (double)ns * 1e-6);
		send_span(r);
	}
	/* Neither a job's end nor its pending state is a refusal. */
	if (r->answer.reason && !(r->job && r->job->finished) && r->answer.status != 409)
		note_refusal(r);
}

enum error outcome_init(void)
{
	return loop_timer_init(&period, end_period, NULL);
}

void outcome_fini(void)
{
	outcome_tell_refusals();
	loop_timer_fini(&period);
}
