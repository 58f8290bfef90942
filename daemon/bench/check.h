/* Comparing a kernel's result with the reference. */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "bench/case.h"
#include "reference/difference.h"

/* Compares a target, laid out as on the device, with the reference, in some windows or completely
 * (all). Adds to the difference. ERR_MEMORY. */
enum error check_target(const struct bench_case *c, const struct case_pixels *pixels, bool all,
                        const char *target, struct difference *difference) MUST_CHECK;

#endif
