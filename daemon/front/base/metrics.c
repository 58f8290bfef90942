/* The metrics registry: a list of series for each metric, which suffices for so few. */
#include "front/base/metrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sort.h"

enum { SAMPLES = 1024, LABEL_SIZE = 80, TRACE_SIZE = 33 };

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

static const struct {
	enum metric_type type;
	const char *name, *labels, *text; /* labels are separated by a comma */
} rows[METRICS] = {
#define METRIC(symbol, type, name, labels, text) {METRIC_##type, name, labels, text},
#include "front/base/metrics.def"
};

/* Upper bounds of histogram buckets in seconds, from a kernel launch to a gigapixel image. */
static const double bounds[] = {1e-5,  2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01,
                                0.025, 0.05,   0.1,  0.25, 0.5,    1,    2.5,  5,      10,   30};
enum { BOUNDS = sizeof bounds / sizeof *bounds };

/* The last traced observation of a bucket. */
struct exemplar {
	char trace[TRACE_SIZE]; /* "": none */
	double seconds;
	double at; /* seconds since 1970 */
};

struct histogram {
	uint64_t count;
	double total, min, max;
	uint64_t bucket[BOUNDS + 1];
	struct exemplar exemplar[BOUNDS + 1];
	double last[SAMPLES]; /* a ring of the last values */
};

struct series {
	struct series *next;
	char label[2][LABEL_SIZE];
	double value;
	struct histogram histogram[]; /* one, in the series of a histogram */
};

static struct series *first[METRICS];

void metrics_fini(void)
{
	for (int m = 0; m < METRICS; m++)
		while (first[m]) {
			struct series *s = first[m];

			first[m] = s->next;
			free(s);
		}
}

/* Finds a series, or adds it; NULL if there is none, or no memory. */
static struct series *find(enum metric metric, const char *label1, const char *label2, bool add)
{
	const char *const labels[2] = {label1 ? label1 : "", label2 ? label2 : ""};
	struct series **at = &first[metric], *s;

	while ((s = *at) && (strncmp(s->label[0], labels[0], LABEL_SIZE - 1) ||
	                     strncmp(s->label[1], labels[1], LABEL_SIZE - 1)))
		at = &s->next;
	if (s || !add)
		return s;
	*at = s = calloc(
	    1, sizeof *s + (rows[metric].type == METRIC_HISTOGRAM ? sizeof s->histogram[0] : 0));
	for (int i = 0; s && i < 2; i++)
		snprintf(s->label[i], LABEL_SIZE, "%s", labels[i]);
	return s;
}

void metric_add(enum metric metric, const char *label1, const char *label2, double value)
{
	struct series *s = find(metric, label1, label2, true);

	if (s)
		s->value += value;
}

void metric_set(enum metric metric, const char *label1, const char *label2, double value)
{
	struct series *s = find(metric, label1, label2, true);

	if (s)
		s->value = value;
}

void metric_forget_gauges(const char *label1)
{
	for (enum metric m = 0; m < METRICS; m++)
		for (struct series **at = &first[m], *s; (s = *at);) {
			if (rows[m].type != METRIC_GAUGE ||
			    strncmp(s->label[0], label1, LABEL_SIZE - 1)) {
				at = &s->next;
				continue;
			}
			*at = s->next;
			free(s);
		}
}

void metric_observe(enum metric metric, const char *label1, const char *label2, uint64_t ns,
                    const char *trace)
{
	const double seconds = (double)ns / 1e9;
	struct series *s = find(metric, label1, label2, true);
	struct histogram *h;
	int b = 0;

	if (!s)
		return;
	h = s->histogram;
	while (b < BOUNDS && seconds > bounds[b])
		b++;
	h->bucket[b]++;
	if (*trace) {
		struct exemplar *e = &h->exemplar[b];

		e->seconds = seconds;
		e->at = (double)clock_ns(CLOCK_REALTIME) * 1e-9;
		snprintf(e->trace, sizeof e->trace, "%s", trace);
	}
	h->last[h->count % SAMPLES] = seconds;
	h->min = h->count && h->min < seconds ? h->min : seconds;
	h->max = h->max > seconds ? h->max : seconds;
	h->total += seconds;
	h->count++;
}

double metric_value(enum metric metric, const char *label1, const char *label2)
{
	const struct series *s = find(metric, label1, label2, false);

	return s ? s->value : 0;
}

/* Returns the first series of a metric. One without labels exists from the start. */
static const struct series *series_of(enum metric metric)
{
	if (!first[metric] && !*rows[metric].labels)
		find(metric, NULL, NULL, true);
	return first[metric];
}

int metric_summary(enum metric metric, size_t i, struct metric_summary *summary)
{
	const struct series *s = series_of(metric);
	const struct histogram *h;
	double sorted[SAMPLES];
	size_t n;

	for (; s && i; i--)
		s = s->next;
	if (!s)
		return 0;
	h = s->histogram;
	n = h->count < SAMPLES ? h->count : SAMPLES;
	memcpy(sorted, h->last, n * sizeof *sorted);
	sort_doubles(sorted, n);
	*summary = (struct metric_summary){.label = {s->label[0], s->label[1]},
	                                   .count = h->count,
	                                   .total = h->total,
	                                   .min = h->min,
	                                   .max = h->max};
	if (n) {
		summary->p50 = sorted[(n - 1) / 2];
		summary->p90 = sorted[(n - 1) * 9 / 10];
		summary->p99 = sorted[(n - 1) * 99 / 100];
	}
	return 1;
}

/* Prints the name of a series, and its labels, if there are any, with `le` if given. */
static void print_series(FILE *out, enum metric metric, const char *suffix, const struct series *s,
                         const char *le)
{
	const char *name = rows[metric].labels;
	const char *separator = "{";

	fprintf(out, "convolved_%s%s", rows[metric].name, suffix);
	for (int i = 0; *name; i++) {
		int length = (int)strcspn(name, ",");

		fprintf(out, "%s%.*s=\"", separator, length, name);
		for (const char *value = s->label[i]; *value; value++) {
			if (strchr("\\\"\n", *value))
				fputc('\\', out);
			fputc(*value == '\n' ? 'n' : *value, out);
		}
		fputc('"', out);
		separator = ",";
		name += length + (name[length] == ',');
	}
	if (le)
		fprintf(out, "%sle=\"%s\"", separator, le);
	if (le || *separator == ',')
		fputc('}', out);
}

static void print_histogram(FILE *out, enum metric metric, const struct series *s,
                            enum metrics_format format)
{
	const struct histogram *h = s->histogram;
	uint64_t below = 0;
	char le[32];

	for (int b = 0; b <= BOUNDS; b++) {
		const struct exemplar *e = &h->exemplar[b];

		below += h->bucket[b];
		if (b < BOUNDS)
			snprintf(le, sizeof le, "%g", bounds[b]);
		print_series(out, metric, "_bucket", s, b < BOUNDS ? le : "+Inf");
		fprintf(out, " %" PRIu64, below);
		if (format == METRICS_OPENMETRICS && *e->trace)
			fprintf(out, " # {trace_id=\"%s\"} %.9g %.3f", e->trace, e->seconds, e->at);
		fputc('\n', out);
	}
	print_series(out, metric, "_sum", s, NULL);
	fprintf(out, " %.9g\n", h->total);
	print_series(out, metric, "_count", s, NULL);
	fprintf(out, " %" PRIu64 "\n", h->count);
}

char *metrics_text(enum metrics_format format, size_t *size)
{
	static const char *const types[] = {[METRIC_COUNTER] = "counter",
	                                    [METRIC_GAUGE] = "gauge",
	                                    [METRIC_HISTOGRAM] = "histogram"};
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	if (!out)
		return NULL;
	for (enum metric m = 0; m < METRICS; m++) {
		const enum metric_type type = rows[m].type;
		const char *name = rows[m].name;
		int length = (int)strlen(name);

		/* In OpenMetrics the description's name of a counter lacks its end. */
		if (format == METRICS_OPENMETRICS && type == METRIC_COUNTER)
			length -= (int)strlen("_total");
		fprintf(out, "# HELP convolved_%.*s %s\n# TYPE convolved_%.*s %s\n", length, name,
		        rows[m].text, length, name, types[type]);
		for (const struct series *s = series_of(m); s; s = s->next) {
			if (type == METRIC_HISTOGRAM) {
				print_histogram(out, m, s, format);
				continue;
			}
			print_series(out, m, "", s, NULL);
			fprintf(out, " %.17g\n", s->value);
		}
	}
	if (format == METRICS_OPENMETRICS)
		fputs("# EOF\n", out);
	return fclose(out) ? NULL : text;
}
