/* The life of the trace worker, and the spans of tiles. */
#include "front/workers/tracer.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/loop.h"
#include "front/base/metrics.h"
#include "front/config/config.h"
#include "front/workers/supervisor.h"

/* Maximum number of tiles of an image that have spans; a large image has thousands. */
enum { TILES_MAX = 64, FLUSH_MS = 1000 };

static struct worker worker; /* owner NULL: there is no collector */

static void worker_prepare(const struct worker *, struct start *start)
{
	snprintf(start->endpoint, sizeof start->endpoint, "%s", config->otlp_endpoint);
}

static void worker_message(struct worker *w, const struct message *message)
{
	if (message->type == MSG_SPANS_LOST)
		metric_add(METRIC_SPANS_LOST, NULL, NULL, (double)message->spans_lost.count);
	else
		worker_refuse(w, message_name(message->type));
}

enum error tracer_init(void)
{
	static const struct worker_owner owner = {.kind = "trace",
	                                          .program = "convolved-trace",
	                                          .prepare = worker_prepare,
	                                          .message = worker_message};

	return *config->otlp_endpoint ? worker_start(&worker, &owner, 0) : ERR_OK;
}

void tracer_fini(void)
{
	struct pollfd process = {.fd = worker.process.fd, .events = POLLIN};

	if (worker.state == WORKER_UP) { /* it sends what it has */
		shutdown(worker.socket.fd, SHUT_WR);
		poll(&process, 1, FLUSH_MS);
	}
	worker_fini(&worker);
}

void tracer_join(struct trace *trace)
{
	if (worker.owner)
		trace_record(trace, config->otlp_share);
}

struct span tracer_part(const struct trace *trace, const char *name, uint64_t start, uint64_t end)
{
	/* Nanoseconds since 1970 at 0 of loop_now(). */
	const uint64_t offset = clock_ns(CLOCK_REALTIME) - loop_now();
	struct span span = {.start = start + offset, .end = end + offset};

	memcpy(span.trace, trace->id, sizeof span.trace);
	memcpy(span.parent, trace->span, sizeof span.parent);
	trace_new_span(span.id);
	snprintf(span.name, sizeof span.name, "%s", name);
	return span;
}

void tracer_send(const struct span *span)
{
	struct message message = {.type = MSG_SPAN, .span.span = *span};

	/* worker_send() would kill a worker that does not read; this one is left alone. */
	if (worker.state != WORKER_UP || wire_send(worker.socket.fd, &message, NULL))
		metric_add(METRIC_SPANS_LOST, NULL, NULL, 1);
}

void tracer_tile(const struct task *task, const struct message_tile_done *done, const char *device)
{
	const struct trace *trace = &task->job->terms.trace;
	struct span span;
	size_t used = 0;

	if (!*trace->span || task->tile.index >= TILES_MAX || !task_is_current(task))
		return;
	span = tracer_part(trace, "tile", task->sent, loop_now());
	span.number[SPAN_JOB] = task->job->id;
	span.failed = done->error != ERR_OK;
	if (done->error)
		snprintf(span.text[SPAN_ERROR], SPAN_TEXT_SIZE, "%s",
		         error_row((enum error)done->error)->slug);
	snprintf(span.text[SPAN_DEVICE], SPAN_TEXT_SIZE, "%s", device);
	for (unsigned i = 0; i < done->launches && used < SPAN_TEXT_SIZE; i++)
		used += (size_t)snprintf(span.text[SPAN_KERNELS] + used, SPAN_TEXT_SIZE - used,
		                         "%s%s", i ? "," : "", kernel_name(done->launch[i].kernel));
	tracer_send(&span);
}
