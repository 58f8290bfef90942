/* Stages are placed by what is known of them: the wait for a codec worker as it was; decoding from
 * the start of the job's (last) run, encoding and comparing to its end, each as long as the worker
 * was busy with it; compilation to the end of the (last) wait for a program; all other waits
 * together, before encoding. In between, they overlap. */
#include "front/api/spans.h"

#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "base/loop.h"
#include "front/workers/device_table.h"
#include "front/workers/tracer.h"

static void send_stage(const struct job *job, const char *name, uint64_t start, uint64_t end)
{
	struct span span = tracer_part(&job->terms.trace, name, start, end);

	span.number[SPAN_JOB] = job->id;
	tracer_send(&span);
}

void spans_of_job(const struct job *job)
{
	const struct job_times *t = &job->times;

	if (!*job->terms.trace.span)
		return;
	send_stage(job, "queue", t->accepted, t->accepted + t->queue);
	if (t->decode)
		send_stage(job, "decode", t->began, t->began + t->decode);
	if (t->compile)
		send_stage(job, "compile", job->tiles_waited - t->compile, job->tiles_waited);
	if (t->wait)
		send_stage(job, "wait", MAX(t->began, t->finished - t->encode - t->wait),
		           t->finished - t->encode);
	if (t->verify)
		send_stage(job, "verify", t->finished - t->verify, t->finished);
	if (t->encode)
		send_stage(job, "encode", t->finished - t->encode, t->finished);
}

/* What is known of its image. */
static void describe_job(struct span *span, const struct job *job)
{
	span->number[SPAN_JOB] = job->id;
	span->number[SPAN_TILES] = job_tiles_done(job);
	span->number[SPAN_BODY] = job->options.body_size;
	job_text_filters(job, span->text[SPAN_FILTERS], SPAN_TEXT_SIZE);
	job_text_image(job, span->text[SPAN_IMAGE], SPAN_TEXT_SIZE);
	job_text_devices(job, span->text[SPAN_DEVICE], SPAN_TEXT_SIZE);
	if (job->image_known)
		snprintf(span->text[SPAN_FORMAT], SPAN_TEXT_SIZE, "%s",
		         format_name(job->input_format));
	if (job->finished)
		span->number[SPAN_ANSWER] = job->answer_size;
}

void spans_of_request(const struct request *r)
{
	const struct trace *trace = &r->terms.trace;
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
	if (r->job)
		describe_job(&span, r->job);
	tracer_send(&span);
}

void job_text_devices(const struct job *job, char *text, size_t room)
{
	size_t used = 0;

	*text = '\0';
	for (unsigned i = 0; i < devices_count(); i++)
		if (job->devices_used >> i & 1 && used < room)
			used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "," : "",
			                         device_get(i)->label);
}

void job_text_filters(const struct job *job, char *text, size_t room)
{
	const struct chain *chain = job->asked->chain;
	size_t used = 0;

	*text = '\0';
	for (uint32_t i = 0; i < chain->count && used < room; i++) {
		const struct filter_call *call = &chain->call[i];

		used += (size_t)snprintf(text + used, room - used, "%s%s%s%s", i ? "," : "",
		                         call->channels ? channels_name(call->channels) : "",
		                         call->channels ? ":" : "", filter_name(call->filter));
	}
}

void job_text_image(const struct job *job, char *text, size_t room)
{
	const struct image *image = &job->whole;

	*text = '\0';
	if (job->image_known)
		snprintf(text, room, "%ux%ux%u:%s", image->width, image->height, image->bands,
		         pixel_type_name(image->type));
}
