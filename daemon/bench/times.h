/* Clock and statistics of timed runs. */
#ifndef BENCH_TIMES_H
#define BENCH_TIMES_H

#include <stddef.h>

struct times {
	double median, mean; /* milliseconds */
};

/* Summarizes at least one time, none NaN; sorts them. */
struct times times_summarize(double *ms, size_t count);

/* Milliseconds of a monotonic clock. */
double times_now(void);

#endif
