/* The processor's own baseline: the same filter in plain C, with floats, in so many threads. */
#ifndef BENCH_PROCESSOR_H
#define BENCH_PROCESSOR_H

#include "bench/check.h"

/* The times of a number of threads. */
struct processor_run {
	uint32_t runs;
	struct times times; /* for the whole ROI; taken on as many rows as take a while */
	struct difference difference;
};

/* True if the processor has code for the case: one filter of all channels that is a sum with
 * weights, a gradient's magnitude or bilateral. */
bool processor_can(const struct bench_case *c);

/* Filters a part of the rows a few times and compares the result with the reference in the first
 * and the last rows of each thread. ERR_MEMORY if there is none for pixels or threads. */
enum error processor_measure(const struct bench_case *c, const struct case_pixels *pixels,
                             uint32_t threads, struct processor_run *run) MUST_CHECK;

#endif
