/* The metrics: counters, gauges and histograms by label values. A series is created at its first
 * use; output is in Prometheus text format, or OpenMetrics with exemplars. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum metric {
#define METRIC(symbol, type, name, labels, text) METRIC_##symbol,
#include "front/base/metrics.def"
	METRICS
};

void metrics_fini(void);

/* Labels that the metric does not have are NULL. Without memory for a series its value is lost.
 * Adding 0 creates a series (a histogram's too), so that Prometheus sees its first increase. */
void metric_add(enum metric metric, const char *label1, const char *label2, double value);
void metric_set(enum metric metric, const char *label1, const char *label2, double value);
/* Removes all series of gauges whose first label has this value. */
void metric_forget_gauges(const char *label1);
/* Observes a duration of a trace with this id ("": none), which becomes its bucket's exemplar. */
void metric_observe(enum metric metric, const char *label1, const char *label2, uint64_t ns,
                    const char *trace);

/* A series of a histogram: the values of its labels, and statistics in seconds, with percentiles of
 * its last 1024 values. */
struct metric_summary {
	const char *label[2];
	uint64_t count;
	double total, min, p50, p90, p99, max;
};

/* Fills in a histogram's i-th series; returns 0 after the last. */
int metric_summary(enum metric metric, size_t i, struct metric_summary *summary);

/* The value of a counter's or gauge's series, 0 if it does not exist. */
double metric_value(enum metric metric, const char *label1, const char *label2);

enum metrics_format { METRICS_PROMETHEUS, METRICS_OPENMETRICS };

/* Returns all metrics in the Prometheus text format 0.0.4, or OpenMetrics 1.0
 * (https://openmetrics.io); the caller frees the text. NULL if memory runs out. */
char *metrics_text(enum metrics_format format, size_t *size);
