/* Checking: is what a kernel made what the reference makes? */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "bench/case.h"
#include "reference/difference.h"

/* Compares a target, whose rows lie as on the device, with the reference: in some windows, or all
 * of it. Adds to the difference. ERR_MEMORY. */
enum error check_target(const struct bench_case *c, const struct case_pixels *pixels, bool all,
                        const char *target, struct difference *difference) MUST_CHECK;

#endif
