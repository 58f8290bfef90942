/* The lines are cut in place. */
#include "client/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS_MAX = 64 };

static int compare(const void *a, const void *b)
{
	const struct sample *one = a, *other = b;
	int order = strcmp(one->name, other->name);

	return order ? order : strcmp(one->labels, other->labels);
}

/* Cuts a line, which a NUL ends, into a sample. */
static bool cut(char *line, struct sample *sample)
{
	char *value = line + strcspn(line, "{ "), *end;

	*sample = (struct sample){.name = line, .labels = ""};
	if (value == line || *line == '#' || !*value)
		return false;
	if (*value == '{') {
		*value = '\0';
		sample->labels = value + 1;
		value = strrchr(value + 1, '}');
		if (!value)
			return false;
	}
	*value++ = '\0';
	sample->value = strtod(value, &end);
	return end > value && !*end && !isnan(sample->value);
}

void metrics_init(struct metrics *m, char *text)
{
	char *line, *end = text;

	*m = (struct metrics){.text = text};
	do {
		line = end;
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = '\0';
		if (!(m->count & (m->count + 1))) /* full: 0, 1, 3, 7 … */
			m->sample = reallocarray(m->sample, 2 * m->count + 1, sizeof *m->sample);
		if (!m->sample)
			abort();
		m->count += cut(line, &m->sample[m->count]);
	} while (*end);
	if (m->count)
		qsort(m->sample, m->count, sizeof *m->sample, compare);
}

void metrics_fini(struct metrics *m)
{
	free(m->text);
	free(m->sample);
	*m = (struct metrics){0};
}

/* Returns the first sample that is not before this one; the end of all if there is none. */
static const struct sample *seek(const struct metrics *m, const char *name, const char *labels)
{
	const struct sample wanted = {.name = name, .labels = labels};
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&m->sample[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return m->sample + low;
}

/* Returns the sample if it has this name, else NULL. */
static const struct sample *check(const struct metrics *m, const struct sample *s, const char *name)
{
	return s < m->sample + m->count && !strcmp(s->name, name) ? s : NULL;
}

const struct sample *metrics_sample(const struct metrics *m, const char *name, size_t i)
{
	const struct sample *first = seek(m, name, "");

	return i < (size_t)(m->sample + m->count - first) ? check(m, first + i, name) : NULL;
}

double metrics_value(const struct metrics *m, const char *name, const char *labels)
{
	const struct sample *s = check(m, seek(m, name, labels), name);

	return s && !strcmp(s->labels, labels) ? s->value : 0;
}

double metrics_sum(const struct metrics *m, const char *name, const char *label)
{
	double sum = 0;

	for (const struct sample *s = seek(m, name, ""); check(m, s, name); s++)
		if (!label || strstr(s->labels, label))
			sum += s->value;
	return sum;
}

void metrics_label(const struct sample *s, const char *label, char *value, size_t size)
{
	size_t length = strlen(label), used = 0;
	const char *at = s->labels;

	while ((at = strstr(at, label)) &&
	       (strncmp(at + length, "=\"", 2) || (at > s->labels && at[-1] != ',')))
		at++;
	if (!at) {
		snprintf(value, size, "-");
		return;
	}
	for (at += length + 2; *at && *at != '"' && used + 1 < size; at++) {
		if (*at == '\\' && at[1])
			at++;
		value[used++] = *at;
	}
	value[used] = '\0';
}

struct bucket {
	double bound, count;
};

static int by_bound(const void *a, const void *b)
{
	const struct bucket *one = a, *other = b;

	return (one->bound > other->bound) - (one->bound < other->bound);
}

double metrics_quantile(const struct metrics *now, const struct metrics *before, const char *name,
                        const char *labels, double share)
{
	struct bucket bucket[BUCKETS_MAX + 1] = {{0}};
	char samples[128], first[512];
	double was = 0, rank;
	size_t n = 0, i = 1;
	bool restarted;

	snprintf(samples, sizeof samples, "%s_count", name);
	restarted = metrics_value(before, samples, labels) > metrics_value(now, samples, labels);
	snprintf(samples, sizeof samples, "%s_bucket", name);
	snprintf(first, sizeof first, "%s%sle=\"", labels, *labels ? "," : "");
	for (const struct sample *s = seek(now, samples, first);
	     n < BUCKETS_MAX && check(now, s, samples) && !strncmp(s->labels, first, strlen(first));
	     s++) {
		was = restarted ? 0 : metrics_value(before, samples, s->labels);
		bucket[++n] =
		    (struct bucket){strtod(s->labels + strlen(first), NULL), s->value - was};
	}
	qsort(bucket + 1, n, sizeof *bucket, by_bound); /* element 0: where all begins */
	rank = share * bucket[n].count;
	while (i < n && bucket[i].count < rank)
		i++;
	if (!(rank > 0))
		return NAN;
	if (isinf(bucket[i].bound))
		return bucket[i - 1].bound;
	return bucket[i - 1].bound + (bucket[i].bound - bucket[i - 1].bound) *
	                                 (rank - bucket[i - 1].count) /
	                                 (bucket[i].count - bucket[i - 1].count);
}
