/* A case: one filter on one image, and the image's pixels on a device. */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include "bench/options.h"
#include "common/chain.h"
#include "device/plan/step.h"

struct bench_case {
	struct chain chain; /* of one filter */
	struct image image;
	const void *pixels; /* packed; the caller's */
	double taps;        /* of the filter's window */
};

enum { PAIRS = 3 };

/* The source exists twice: with the halo that the service's tiles have, made by the border rule,
 * for our own kernels; and bare, for the published ones, which clamp what they read into it
 * (`reach`). Of each there are as many copies, used in turn with as many targets, that no run finds
 * its pixels in a cache. The views' origins are of the ROI's first pixel; they have no buffer. */
struct case_pixels {
	struct rectangle source, target; /* in the image */
	struct image part;               /* the image that is the source ROI */
	uint32_t halo_x, halo_y;
	char *padded; /* the source with its halo, on the host too */
	struct view padded_view, bare_view, target_view;
	uint64_t padded_size, bare_size, target_size; /* bytes */
	cl_mem padded_buffer[PAIRS], bare_buffer[PAIRS], target_buffer[PAIRS];
};

/* Makes all of a case, by the ROIs of the options. Device and queue must outlive it. ERR_MEMORY, or
 * ERR_DEVICE if the device has no room for the case, said on standard error; case_pixels_fini() is
 * the caller's in any case. */
enum error case_pixels_init(struct case_pixels *pixels, const struct bench_case *c,
                            const struct bench_options *options, const struct device *device,
                            cl_command_queue queue) MUST_CHECK;
/* All zero is allowed. */
void case_pixels_fini(struct case_pixels *pixels);

#endif
