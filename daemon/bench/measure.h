/* Measuring all variants of one filter on one image and one device. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench/case.h"
#include "device/plan/plan.h"

/* The result of one variant. */
struct measured {
	const char *variant;
	struct shape shape;   /* 0: none */
	uint32_t runs;        /* timed runs; `reference`: one, on a part */
	double median_ms;     /* for the whole image */
	double gb_per_s;      /* the image's bytes, read once and written once */
	double share_of_copy; /* of the bandwidth of a copy on the device in the same rounds */
	uint64_t verified;    /* samples compared with the reference */
	uint64_t mismatches;
	double max_difference;
};

enum { MEASURED_MAX = 48 };

struct bench_result {
	struct measured measured[MEASURED_MAX];
	uint32_t count;
	double copy_gb_per_s, copy_ms;
};

/* Measures every applicable variant (options->variant: only that one), `reference` last.
 * ERR_MEMORY, or ERR_DEVICE if the device has not enough memory, reported on standard error. */
enum error measure_case(struct programs *programs, const struct bench_options *options,
                        const struct bench_case *c, struct bench_result *result) MUST_CHECK;

#endif
