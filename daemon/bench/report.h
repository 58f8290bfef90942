/* Telling results: a table for people, rows of JSON for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <jansson.h>

#include "bench/measure.h"

/* Prints the rows of a case. */
void report_print(const char *filter, const char *device, const struct bench_case *c,
                  const struct bench_result *result);

/* Appends an object for each row. chain: what --filter would take. */
void report_add(json_t *rows, const char *filter, const char *chain, const struct bench_case *c,
                const struct bench_result *result);

/* The object of a device; takes over the rows. copy: GB/s of the last case. */
json_t *report_device(const struct bench_options *options, const struct device *device, double copy,
                      json_t *rows);

#endif
