/* The metrics: series by label values, made when they are first touched; as Prometheus text. */
#ifndef FRONT_BASE_METRICS_H
#define FRONT_BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>

enum metric {
#define METRIC(symbol, type, name, labels, text) METRIC_##symbol,
#include "front/base/metrics.def"
#undef METRIC
	METRICS
};

void metrics_fini(void);

/* Label values: NULL for a label that the metric does not have. Without memory for a new series the
 * value is lost. Adding 0 makes a series, of a histogram too, so that its first increase is seen.
 */
void metric_add(enum metric metric, const char *label1, const char *label2, double value);
void metric_set(enum metric metric, const char *label1, const char *label2, double value);
/* Takes away all series of this metric whose first label has this value. */
void metric_forget(enum metric metric, const char *label1);
void metric_observe(enum metric metric, const char *label1, const char *label2, double seconds);

/* What a histogram's series has seen; the percentiles are of its last 1024 values. */
struct metric_summary {
	const char *label1, *label2;
	uint64_t count;
	double total, min, p50, p90, p99, max;
};

/* Fills the i-th series of a histogram; 0 after the last. */
int metric_summary(enum metric metric, size_t i, struct metric_summary *summary);

/* The value of a counter's or gauge's series, 0 if it does not exist. */
double metric_value(enum metric metric, const char *label1, const char *label2);

/* All metrics in the Prometheus text format 0.0.4; the caller frees it. NULL without memory. */
char *metrics_text(size_t *size);

#endif
