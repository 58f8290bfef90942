/* The metrics as JSON. All streams share one event a second, which is made only while there are
 * some: reading the gauges and sorting the histograms costs the front's thread some time. */
#include "front/api/figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "front/api/gauges.h"
#include "front/base/loop.h"
#include "front/base/metrics.h"

enum { TICK_MS = 1000 };

static struct loop_timer tick;
static struct waiter *waiters;
static char *event; /* the last one */
static size_t event_size;
static uint64_t made; /* loop_now() when it was */
static bool draining;

static json_t *describe_labels(const char *names, const struct metric_summary *s)
{
	json_t *labels = json_object();

	for (int i = 0; *names; i++) {
		size_t length = strcspn(names, ",");

		json_object_setn_new(labels, names, length, json_string(s->label[i]));
		names += length + (names[length] == ',');
	}
	return labels;
}

static json_t *describe_series(const struct metric_row *row, const struct metric_summary *s)
{
	json_t *labels = describe_labels(row->labels, s);

	if (row->type != METRIC_HISTOGRAM)
		return json_pack("{s:o, s:f}", "labels", labels, "value", s->value);
	return json_pack("{s:o, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "labels", labels, "count",
	                 (json_int_t)s->count, "total_seconds", s->total, "min_seconds", s->min,
	                 "p50_seconds", s->p50, "p90_seconds", s->p90, "p99_seconds", s->p99,
	                 "max_seconds", s->max);
}

static json_t *describe_metric(enum metric metric, bool text)
{
	const struct metric_row *row = metric_row(metric);
	struct metric_summary s;
	json_t *series = json_array();

	for (size_t i = 0; metric_summary(metric, i, &s); i++)
		json_array_append_new(series, describe_series(row, &s));
	return json_pack("{s:s, s:s, s:s*, s:o}", "name", row->name, "type",
	                 metric_type_name(row->type), "text", text ? row->text : NULL, "series",
	                 series);
}

/* texts: with what the metrics mean, which a stream need not repeat. */
static json_t *describe(bool texts)
{
	json_t *metrics = json_array();
	struct timespec now;

	gauges_update();
	clock_gettime(CLOCK_REALTIME, &now);
	for (enum metric m = 0; m < METRICS; m++)
		json_array_append_new(metrics, describe_metric(m, texts));
	return json_pack("{s:f, s:o}", "time", (double)now.tv_sec + (double)now.tv_nsec * 1e-9,
	                 "metrics", metrics);
}

void figures_get(struct request *r)
{
	answer_json(&r->answer, 200, describe(true));
}

/* Without memory there is none, and the streams end. */
static void make_event(void)
{
	json_t *json = describe(false);
	char *data = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15)), *text = NULL;
	int size = data ? asprintf(&text, "event: metrics\ndata: %s\n\n", data) : -1;

	free(data);
	json_decref(json);
	free(event);
	event = size < 0 ? NULL : text;
	event_size = size < 0 ? 0 : (size_t)size;
	made = loop_now();
}

static void wake_all(void)
{
	while (waiters)
		waiter_wake(waiters);
}

static void on_tick(void *context)
{
	(void)context;
	if (!waiters) { /* nobody has come back since the last one */
		loop_timer_repeat(&tick, 0);
		return;
	}
	make_event();
	wake_all();
}

static bool next_event(struct request *r)
{
	char *copy;

	if (draining)
		return false;
	if (!r->told.at && loop_now() - made >= TICK_MS * UINT64_C(1000000))
		make_event();
	if (r->told.at == made) {
		waiter_join(&r->waiter, &waiters);
		if (!loop_timer_left(&tick))
			loop_timer_repeat(&tick, TICK_MS);
		return true;
	}
	r->told.at = made;
	copy = event ? malloc(event_size) : NULL;
	if (copy)
		memcpy(copy, event, event_size);
	answer_piece(&r->answer, copy, copy ? event_size : 0);
	return copy;
}

void figures_get_events(struct request *r)
{
	r->stream = next_event;
	r->answer.status = 200;
	r->answer.content_type = "text/event-stream";
}

void figures_drain(void)
{
	draining = true;
	wake_all();
}

enum error figures_init(void)
{
	return loop_timer_init(&tick, on_tick, NULL);
}

void figures_fini(void)
{
	loop_timer_fini(&tick);
	free(event);
	event = NULL;
}
