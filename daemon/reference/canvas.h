/* Filters in double precision: what each operation comes to on a piece of an image, and how far a
 * right result in float32 may be from it. For the reference; see reference.h. */
#ifndef REFERENCE_CANVAS_H
#define REFERENCE_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/filters.h"

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

/* The numbers that results are. */
struct scale {
	double full;   /* scale */
	bool integers; /* of the image: the circle of directions is the whole range, not radians */
	bool whole;    /* rounded to whole numbers after each operation, so that half a count of
	                  error is allowed anyway */
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

/* Applies an operation, without offset and rounding; `in` reaches at least the operation's radius
 * further than `out` and has as many bands. alpha_weighted: the last band is alpha, which weights
 * the others; where it comes to 0 or less they are 0 (OPERATION_UNSHARP: unchanged). ERR_MEMORY. */
enum error canvas_apply(const struct operation *operation, const struct scale *scale,
                        bool alpha_weighted, const struct canvas *in,
                        struct canvas *out) MUST_CHECK;

#endif
