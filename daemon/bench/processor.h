/* The processor's own baseline: the same filter in plain C, with floats, in so many threads. */
#ifndef BENCH_PROCESSOR_H
#define BENCH_PROCESSOR_H

#include "bench/result.h"

/* True if the processor has code for the case: one filter of all channels that is a sum with
 * weights, a gradient's magnitude or bilateral. */
bool processor_can(const struct bench_case *c);

/* Filters a part of the rows a few times, in m->threads threads (at most 8), and sets their
 * number and the times for the whole ROI. Compares the result with the reference in the first and
 * the last rows of each thread. ERR_MEMORY if there is none for pixels or threads. */
enum error processor_measure(const struct case_pixels *pixels, struct measured *m) MUST_CHECK;

#endif
