/* Filters in double precision: what each operation comes to on a piece of an image. */
#ifndef REFERENCE_OPERATIONS_H
#define REFERENCE_OPERATIONS_H

#include "common/filters.h"
#include "reference/canvas.h"

/* The numbers that results are. */
struct scale {
	double full;   /* scale */
	bool integers; /* of the image: the circle of directions is the whole range, not radians */
	bool whole;    /* rounded to whole numbers after each operation, so that half a count of
	                  error is allowed anyway */
};

/* Applies an operation, without offset and rounding; `in` reaches at least the operation's radius
 * further than `out` and has as many bands. alpha_weighted: the last band is alpha, which weights
 * the others; where it comes to 0 or less they are 0 (OPERATION_UNSHARP: unchanged). ERR_MEMORY. */
enum error operations_apply(const struct operation *operation, const struct scale *scale,
                            bool alpha_weighted, const struct canvas *in,
                            struct canvas *out) MUST_CHECK;

#endif
