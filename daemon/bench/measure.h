/* Measuring all variants of one filter on one image and one device. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench/check.h"
#include "device/plan/plan.h"

/* The result of one variant. */
struct measured {
	const char *variant;
	const char *origin;   /* "general", "special", "classic", "service" or "processor" */
	const char *form;     /* what the source and the target are */
	struct shape shape;   /* 0: none */
	uint32_t launches;    /* 0: not on the device */
	uint32_t threads;     /* of the processor; 0: on the device */
	uint32_t runs;        /* timed runs; on the processor: on a part */
	struct times times;   /* for the whole ROI */
	double gb_per_s;      /* the ROI's bytes, read once and written once */
	double share_of_copy; /* of the bandwidth of a copy on the device in the same rounds */
	uint64_t verified;    /* samples compared with the reference */
	uint64_t mismatches;
	uint64_t outside; /* bytes outside the target ROI that were written */
	double max_difference;
};

/* True if everything that was compared is right. */
bool measured_is_right(const struct measured *measured);

enum { MEASURED_MAX = 64 };

struct bench_result {
	struct measured measured[MEASURED_MAX];
	uint32_t count;
	struct times copy;
	double copy_gb_per_s;
	struct image image; /* of the source ROI, and so of `pixels` */
	const char *best;   /* variant whose packed result `pixels` holds; NULL: none */
	void *pixels;       /* only for --output; the caller's to free */
};

/* Measures every applicable variant that the options want; what runs on the processor last. Owns
 * nothing afterwards but result->pixels, which is set on failure, too. ERR_MEMORY;
 * ERR_BAD_PARAMETER or ERR_DEVICE, reported on standard error. */
enum error measure_case(struct programs *programs, const struct bench_options *options,
                        const struct bench_case *c, struct bench_result *result) MUST_CHECK;

#endif
