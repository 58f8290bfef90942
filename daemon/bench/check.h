/* Judging runs: their results, compared with the reference, and their times. */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "bench/case.h"
#include "reference/difference.h"

enum { POISON = 0xa5 }; /* every byte of a target before the run that is checked */

/* Compares a target, laid out as on the device, with the reference, in some windows or completely
 * (all). Adds to the difference. ERR_MEMORY. */
enum error check_target(const struct bench_case *c, const struct case_pixels *pixels, bool all,
                        const char *target, struct difference *difference) MUST_CHECK;

/* Compares a result with the reference in one window. from: the window's first pixel in it; pitch:
 * bytes from row to row. ERR_MEMORY. */
enum error check_window(const struct bench_case *c, const struct case_pixels *pixels,
                        const struct window *window, const char *from, size_t pitch,
                        struct difference *difference) MUST_CHECK;

/* Bytes of a target outside the target ROI that are not poison. */
uint64_t check_outside(const struct case_pixels *pixels, const char *target);

/* Times of runs, in milliseconds. */
struct times {
	double median, mean;
};

/* Summarizes at least one time, none NaN; sorts them. */
struct times times_summarize(double *ms, size_t count);

/* The milliseconds of a monotonic clock. */
double times_now(void);

#endif
