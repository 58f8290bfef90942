/* The ends of jobs. One line says whose image it was, what became of it, and what it took. */
#include "front/api/outcome.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "front/api/spans.h"
#include "front/base/metrics.h"
#include "front/workers/canary.h"

enum { FILTERS_SIZE = 256, IMAGE_SIZE = 48 };

/* Logs a job; `end` is the predicate of the line, as "is done". */
static void log_job(const char *id, const struct job *job, const char *end, enum log_level level)
{
	uint64_t us =
	    ((job->finished ? job->times.finished : loop_now()) - job->times.accepted) / 1000;
	char devices[256], span[TRACE_TEXT_SIZE], filters[FILTERS_SIZE], image[IMAGE_SIZE];
	const char *format = job->image_known ? format_name(job->input_format) : "";

	job_text_devices(job, devices, sizeof devices);
	job_text_image(job, image, sizeof image);
	job_text_filters(job, filters, sizeof filters);
	log_event(
	    level,
	    LOG_FIELDS(.job = job->id, .request = id, .route = job->terms.route,
	               .client = job->terms.client, .filters = filters, .format = format,
	               .image = image, .bytes_in = job->options.body_size,
	               .bytes_out = job->answer_size, .duration_us = us, .device = devices,
	               .tiles = job_tiles_done(job), .status = (uint64_t)error_status(job->error),
	               .error = job->error ? error_slug(job->error) : NULL,
	               .trace = job->terms.trace.id, .span = trace_span(&job->terms.trace)),
	    "request %s%s: job %llu %s after %.3f ms%s%s, for %s: %s of %s%s%s, %llu bytes in, "
	    "%llu out%s%s",
	    id, trace_text(&job->terms.trace, span), (unsigned long long)job->id, end,
	    (double)us * 1e-3, *devices ? " on " : "", devices, job->terms.client, filters,
	    job->image_known ? format : "no known image", *image ? " " : "", image,
	    (unsigned long long)job->options.body_size, (unsigned long long)job->answer_size,
	    job->error ? ": " : "", job->error ? job->problem.detail : "");
}

/* Stages that the job did not have, as the transfers of a device without memory of its own, are not
 * counted. */
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
			metric_observe_traced(METRIC_STAGE_DURATION, stages[i].name, NULL,
			                      (double)stages[i].ns * 1e-9,
			                      trace_exemplar(&job->terms.trace));
}

static void count_jpeg(const struct job *job)
{
	if (job->input_format == FORMAT_JPEG)
		metric_add(METRIC_JPEG_SIDES, "decode", jpeg_reason_slug(job->jpeg[JPEG_DECODE]),
		           1);
	if (job->format == FORMAT_JPEG)
		metric_add(METRIC_JPEG_SIDES, "encode", jpeg_reason_slug(job->jpeg[JPEG_ENCODE]),
		           1);
}

void outcome_record(const char *id, const struct job *job)
{
	char end[64] = "is done";

	if (job->error)
		snprintf(end, sizeof end, "has failed: %s", error_slug(job->error));
	log_job(id, job, end, error_status(job->error) >= 500 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO);
	spans_of_job(job);
	if (job->error) {
		metric_add(METRIC_JOBS_FAILED, error_slug(job->error), NULL, 1);
		return;
	}
	canary_success();
	observe_stages(job);
	count_jpeg(job);
}

void outcome_gone(const char *id, const struct job *job)
{
	log_job(id, job, "is given up, as the client has gone,", LOG_LEVEL_INFO);
	metric_add(METRIC_JOBS_FAILED, "client-gone", NULL, 1);
}
