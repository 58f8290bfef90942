/* A case: one filter, one image, and the image's pixels on a device. */
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

/* The source exists in two forms: with a halo made by the border rule, as in the service's tiles,
 * for our own kernels; and without, for the published kernels, which clamp coordinates to it
 * (`reach`). Each form has PAIRS copies, used in turn with as many targets, so that a run does not
 * find its pixels in a cache. The views' origins are the ROI's first pixel; their buffers are not
 * set. */
struct case_pixels {
	struct rectangle source, target; /* in the image */
	struct image part;               /* the source ROI as an image */
	uint32_t halo_x, halo_y;
	char *padded; /* the source with its halo, on the host */
	struct view padded_view, bare_view, target_view;
	uint64_t padded_size, bare_size, target_size; /* bytes */
	cl_mem padded_buffer[PAIRS], bare_buffer[PAIRS], target_buffer[PAIRS];
};

/* Makes the buffers of a case, for the ROIs of the options. Device and queue must outlive them.
 * ERR_MEMORY, or ERR_DEVICE if the device has not enough memory, reported on standard error. The
 * caller calls case_pixels_fini() in any case. */
enum error case_pixels_init(struct case_pixels *pixels, const struct bench_case *c,
                            const struct bench_options *options, const struct device *device,
                            cl_command_queue queue) MUST_CHECK;
/* Frees the buffers. All zeros is allowed. */
void case_pixels_fini(struct case_pixels *pixels);

#endif
