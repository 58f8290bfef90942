/* Telling results: a table for people, rows of JSON for programs. */
#include "bench/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

static double slowest(const struct bench_result *result)
{
	double ms = 0;

	for (uint32_t i = 0; i < result->count; i++)
		if (!result->measured[i].threads)
			ms = fmax(ms, result->measured[i].times.median);
	return ms;
}

static double reference_ms(const struct bench_result *result)
{
	for (uint32_t i = 0; i < result->count; i++)
		if (!strcmp(result->measured[i].variant, "reference"))
			return result->measured[i].times.median;
	return NAN;
}

static void print_head(const char *filter, const char *device, const struct bench_case *c,
                       const struct bench_result *result)
{
	printf("\n%s, %s x%u, %ux%u on %s: copy %.3f ms, %.1f GB/s\n", filter,
	       pixel_type_name(c->image.type), c->image.bands, c->image.width, c->image.height,
	       device, result->copy.median, result->copy_gb_per_s);
	printf("  %-24s %-18s %-15s %5s %11s %11s %9s %8s %10s %11s  %s\n", "variant", "shape",
	       "form", "runs", "median ms", "mean ms", "GB/s", "of copy", "slowest x",
	       "reference x", "verified");
}

static void print_row(const struct measured *m, const struct bench_result *result)
{
	char shape[32] = "", wrong[64] = "right", times_reference[32] = "-";
	const double reference = reference_ms(result);

	if (m->shape.x)
		snprintf(shape, sizeof shape, "%ux%u by %ux%u", m->shape.x, m->shape.y,
		         m->shape.group_x, m->shape.group_y);
	else if (m->launches > 1)
		snprintf(shape, sizeof shape, "%u launches", m->launches);
	if (m->mismatches)
		snprintf(wrong, sizeof wrong, "WRONG");
	else if (m->outside)
		snprintf(wrong, sizeof wrong, "WRONG: %llu bytes outside the target",
		         (unsigned long long)m->outside);
	if (isfinite(reference))
		snprintf(times_reference, sizeof times_reference, "%.1f",
		         reference / m->times.median);
	printf("  %-24s %-18s %-15s %5u %11.3f %11.3f %9.1f %8.3f %10.1f %11s  %s, %.3g\n",
	       m->variant, shape, m->form, m->runs, m->times.median, m->times.mean, m->gb_per_s,
	       m->share_of_copy, slowest(result) / m->times.median, times_reference, wrong,
	       m->max_difference);
}

void report_print(const char *filter, const char *device, const struct bench_case *c,
                  const struct bench_result *result)
{
	print_head(filter, device, c, result);
	if (!result->count)
		puts("  none: no variant that was asked for applies");
	for (uint32_t i = 0; i < result->count; i++)
		print_row(&result->measured[i], result);
	fflush(stdout);
}

/* Sets members of an object, whose values are given. */
static void merge(json_t *object, json_t *more)
{
	json_object_update(object, more);
	json_decref(more);
}

static json_t *area_json(uint32_t width, uint32_t height)
{
	return json_pack("[i,i]", (int)width, (int)height);
}

static json_t *row_json(const char *filter, const char *chain, const struct bench_case *c,
                        const struct measured *m, const struct bench_result *result)
{
	json_t *row = json_pack(
	    "{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:o}", "variant", m->variant, "filter",
	    filter, "chain", chain, "type", pixel_type_name(c->image.type), "bands",
	    (int)c->image.bands, "width", (int)c->image.width, "height", (int)c->image.height,
	    "taps", (int)c->taps, "roi", area_json(result->image.width, result->image.height));

	merge(row, json_pack("{s:s, s:s, s:i, s:i, s:i, s:[i,i,i,i]}", "origin", m->origin, "form",
	                     m->form, "launches", (int)m->launches, "threads", (int)m->threads,
	                     "runs", (int)m->runs, "shape", (int)m->shape.x, (int)m->shape.y,
	                     (int)m->shape.group_x, (int)m->shape.group_y));
	merge(row, json_pack("{s:f, s:f, s:f, s:f, s:f}", "median_seconds", m->times.median * 1e-3,
	                     "mean_seconds", m->times.mean * 1e-3, "bytes_per_second",
	                     m->gb_per_s * 1e9, "share_of_copy", m->share_of_copy, "copy_seconds",
	                     result->copy.median * 1e-3));
	merge(row, json_pack("{s:b, s:I, s:I, s:I, s:f}", "verified",
	                     m->verified && measured_is_right(m), "verified_samples",
	                     (json_int_t)m->verified, "wrong_samples", (json_int_t)m->mismatches,
	                     "bytes_outside", (json_int_t)m->outside, "max_difference",
	                     m->max_difference));
	return row;
}

void report_add(json_t *rows, const char *filter, const char *chain, const struct bench_case *c,
                const struct bench_result *result)
{
	for (uint32_t i = 0; i < result->count; i++)
		json_array_append_new(rows,
		                      row_json(filter, chain, c, &result->measured[i], result));
}

json_t *report_device(const struct bench_options *o, const struct device *device, double copy,
                      json_t *rows)
{
	json_t *object = json_object(), *command = json_array();
	char date[32] = "";
	time_t now = time(NULL);
	struct tm utc;

	if (gmtime_r(&now, &utc))
		strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
	for (int i = 0; i < o->argc; i++)
		json_array_append_new(command, json_string(o->argv[i]));
	merge(object, json_pack("{s:s, s:s, s:o, s:s, s:s, s:f}", "version", PACKAGE_VERSION,
	                        "date", date, "command", command, "device", device->name, "driver",
	                        device->driver, "copy_bytes_per_second", copy * 1e9));
	merge(object,
	      json_pack("{s:i, s:i, s:f, s:b, s:s}", "iterations", (int)o->iterations, "warmup",
	                (int)o->warmup, "budget_seconds", o->budget, "verify_all", o->verify,
	                "clock", "of the device; rows with threads: the processor's"));
	json_object_set_new(object, "results", rows);
	return object;
}
