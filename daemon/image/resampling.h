/* The arithmetic of a change of size: which pixels of the source a pixel of the result is made
 * from, and their weights, for each direction by itself.
 *
 * Pixel i of the result stands for the stretch [i, i + 1) of its side, and pixel j of the source
 * for that of the source; centres are at half integers. Weights are a kernel's values at the
 * distances of centres, stretched by the ratio when the image shrinks, and divided by their sum (as
 * in Pillow, libvips and ImageMagick; Turkowski, "Filters for Common Resampling Tasks", 1990;
 * Mitchell and Netravali, "Reconstruction Filters in Computer Graphics", 1988). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The kernels, in the order of the parameter's choices. */
enum resample {
	RESAMPLE_LANCZOS3,
	RESAMPLE_LANCZOS2,
	RESAMPLE_MITCHELL,
	RESAMPLE_CATMULLROM,
	RESAMPLE_TRIANGLE,
	RESAMPLE_BOX,
	RESAMPLE_NEAREST,
	RESAMPLES
};

/* The largest ratio of sides, in either direction. */
enum { RESIZE_RATIO_MAX = 100 };

/* A direction. */
struct resizing {
	uint32_t from, to; /* pixels of the source, of the result */
	double first,
	    step; /* in the source: where the result begins, and how long its pixels are */
	enum resample kernel;
};

/* Pixels of a side, some of which may lie outside the image. */
struct extent {
	int32_t first;
	uint32_t count;
};

/* Makes the direction a draft's: of `pixels` pixels for the source and these more on its sides. */
void resizing_from_draft(struct resizing *r, uint32_t pixels, int32_t before, int32_t after);

/* Returns the source's pixels from which these of the result are made. */
struct extent resizing_source(const struct resizing *r, struct extent result);

/* The maximum number of pixels of the source that resizing_weights() returns. */
uint32_t resizing_taps(const struct resizing *r);

/* Sets the weights of the source's pixels that make pixel i of the result, which may lie outside
 * it; their sum is 1. Returns those pixels. */
struct extent resizing_weights(const struct resizing *r, int32_t i, double *weight);
