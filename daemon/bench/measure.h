/* Measuring all variants of one filter on one image and one device. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench/result.h"
#include "device/plan/plan.h"

/* Measures every applicable variant that the options want; what runs on the processor last. Owns
 * nothing afterwards but result->pixels, which is set on failure, too. ERR_MEMORY;
 * ERR_BAD_PARAMETER or ERR_DEVICE, reported on standard error. */
enum error measure_case(struct programs *programs, const struct bench_options *options,
                        const struct bench_case *c, struct bench_result *result) MUST_CHECK;

#endif
