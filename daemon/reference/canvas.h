/* A canvas: a region of an image in double precision, with the slack of each sample: how far a
 * correct float32 result may differ from it. See reference.h. */
#ifndef REFERENCE_CANVAS_H
#define REFERENCE_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A rectangle in pixels of the whole image; it may reach outside the image. */
struct region {
	int x, y;
	uint32_t width, height;
};

/* A region's samples, interleaved, as pixel values, and the slack of each. Arrays of
 * canvas_samples(); owned. */
struct canvas {
	struct region at;
	uint32_t bands;
	bool exact; /* slack is 0 everywhere */
	double *value, *slack;
};

/* A slack that allows any float32, but is finite, so that it can be multiplied by a weight of 0. */
#define SLACK_UNLIMITED 1e60

/* Errors as shares of the sum of magnitudes: the guarantee for float results, and what float32 sums
 * actually lose. */
#define FLOAT_TOLERANCE 1e-5
#define FLOAT_NOISE     1e-6

/* Allocates a canvas with all samples and slacks 0. ERR_MEMORY; call canvas_fini() even then. */
enum error canvas_init(struct canvas *canvas, const struct region *at, uint32_t bands) MUST_CHECK;
void canvas_fini(struct canvas *canvas);

/* The index of the first sample of a pixel, given in pixels of the whole image, inside the
 * canvas. */
size_t canvas_index(const struct canvas *canvas, int x, int y);
size_t canvas_samples(const struct canvas *canvas);

#endif
