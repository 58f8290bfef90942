/* A case: one filter or chain, one image, and the image's pixels on a device. */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include "bench/options.h"
#include "device/plan/step.h"
#include "filters/chain.h"

struct bench_case {
	struct chain chain;
	struct image image;
	const void *pixels; /* packed; the caller's */
	double taps;        /* of the filters' windows together */
};

enum { PAIRS = 3 };

/* The forms in which a kernel gets source and target. Buffers, if not images. */
enum form {
	FORM_TILE,   /* with the chain's halo and aligned, as the service's tiles */
	FORM_BARE,   /* the image alone; published kernels clamp coordinates to the ROI (`reach`) */
	FORM_PADDED, /* with as many pixels around the ROI as the host adds; part of the reach */
	FORM_IMAGE,  /* the ROI as an image object, whose integers are read as such */
	FORM_IMAGES, /* both as image objects; integers are shares of full scale */
	FORMS
};

/* The pixels of a case in each form: PAIRS sources that are used in turn with as many targets, so
 * that a run does not find its pixels in a cache. The views' origins are the ROI's first pixel. */
struct case_pixels {
	const struct bench_case *c;
	const struct device *device;
	cl_command_queue queue;
	struct area source, target; /* in the image */
	struct image part;          /* the source ROI as an image */
	struct image area;          /* the target in memory, with guards around it */
	struct padding padding;     /* of FORM_PADDED; the Sobel study's, if none is given */
	char *tile;                 /* FORM_TILE, on the host, once it is made */
	uint64_t target_size;
	struct view source_view[FORMS][PAIRS], target_view[2][PAIRS]; /* targets: buffers, images */
};

/* Prepares the pixels of a case for the ROIs of the options. All that is given must outlive them.
 * ERR_BAD_PARAMETER if a ROI is not inside the image, reported on standard error. The caller calls
 * case_pixels_fini() in any case. */
enum error case_pixels_init(struct case_pixels *pixels, const struct bench_case *c,
                            const struct bench_options *options, const struct device *device,
                            cl_command_queue queue) MUST_CHECK;
/* Makes the sources and targets of a form, unless they exist. ERR_MEMORY; ERR_DEVICE, reported. */
enum error case_pixels_make(struct case_pixels *pixels, enum form form) MUST_CHECK;
/* Frees everything. All zeros is allowed. */
void case_pixels_fini(struct case_pixels *pixels);

/* The target of a form, of that pair. */
const struct view *case_target(const struct case_pixels *pixels, enum form form, uint32_t pair);

/* Fills a target with `bytes`, target_size of them, or reads it. The layout is the same for buffers
 * and images. Blocks. Returns an OpenCL code. */
cl_int case_target_write(const struct case_pixels *pixels, const struct view *target,
                         const void *bytes) MUST_CHECK;
cl_int case_target_read(const struct case_pixels *pixels, const struct view *target,
                        void *bytes) MUST_CHECK;

#endif
