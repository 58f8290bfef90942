/* The service's metrics, in Prometheus' text format (0.0.4): NAME{LABELS} VALUE, one a line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sample {
	const char *name;
	const char *labels; /* as in the text, "" if there are none */
	double value;
};

/* Samples, sorted by name, then by labels. */
struct metrics {
	char *text;
	struct sample *sample;
	size_t count;
};

/* Parses a text and owns it from then on. Other lines are skipped. */
void metrics_init(struct metrics *metrics, char *text);
void metrics_fini(struct metrics *metrics);

/* Returns the i-th sample of this name; NULL after the last. */
const struct sample *metrics_sample(const struct metrics *metrics, const char *name, size_t i);

/* Returns the value below which this share of a histogram's counts between two readings lies; NAN
 * if it has counted nothing. name: without _bucket. */
double metrics_value(const struct metrics *metrics, const char *name, const char *labels);

/* Returns the sum of the samples of this name, or of those with this label (`state="up"`) if it is
 * not NULL. */
double metrics_sum(const struct metrics *metrics, const char *name, const char *label);

/* Copies the value of a sample's label, cut to the size; "-" if it has none. */
void metrics_label(const struct sample *sample, const char *label, char *value, size_t size);

/* Returns the value below which this share of a histogram's counts between two readings lies; NAN
 * if it has counted nothing. name: without _bucket. */
double metrics_quantile(const struct metrics *now, const struct metrics *before, const char *name,
                        const char *labels, double share);
