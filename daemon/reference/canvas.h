/* Pieces of an image in double precision, with how far a right result in float32 may be from each
 * sample. For the reference; see reference.h. */
#ifndef REFERENCE_CANVAS_H
#define REFERENCE_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* A rectangle in pixels of the whole image; it may reach outside the image. */
struct region {
	int x, y;
	uint32_t width, height;
};

/* A region's samples, interleaved, as pixel values; and for each how far a result that is not wrong
 * may be from it. */
struct canvas {
	struct region at;
	uint32_t bands;
	bool exact; /* slack is 0 everywhere */
	double *value, *slack;
};

/* A slack that allows everything, yet can be multiplied by any weight. */
#define SLACK_UNLIMITED 1e30

/* What is promised of floats, and what sums of float32 really lose, as shares of what is summed. */
#define FLOAT_TOLERANCE 1e-5
#define FLOAT_NOISE     1e-6

/* All samples and slacks 0. canvas_fini() also after a failure. */
enum error canvas_init(struct canvas *canvas, const struct region *at, uint32_t bands) MUST_CHECK;
void canvas_fini(struct canvas *canvas);

/* The index of the first sample of a pixel inside the canvas. */
size_t canvas_index(const struct canvas *canvas, int x, int y);
size_t canvas_samples(const struct canvas *canvas);

#endif
