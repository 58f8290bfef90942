/* Operations in double precision: applies one operation to a canvas. */
#ifndef REFERENCE_APPLY_H
#define REFERENCE_APPLY_H

#include "filters/filters.h"
#include "image/image.h"
#include "reference/canvas.h"

/* The range and rounding of results, and the part of alpha. */
struct scale {
	const struct image *image; /* the whole one */
	double full;               /* full scale of the image's type */
	bool integers; /* the image's type is an integer: directions span its range, not radians */
	bool whole;    /* results are rounded to integers after each operation, which allows an
	                  error of half a count anyway */
	/* The last band is alpha and weights the others; where filtered alpha is 0 or less, colours
	 * are 0 (if the operation compares: unchanged). */
	bool alpha_weighted;
};

/* Applies an operation, without offset and rounding. `in` extends beyond `out` by at least the
 * operation's radius, and has as many bands. Only smoothing and comparing operations may be
 * alpha-weighted. Returns ERR_MEMORY on failure. */
typedef enum error operation_apply(const struct operation *operation, const struct scale *scale,
                                   const struct canvas *in, struct canvas *out);
MUST_CHECK operation_apply operations_apply;

/* Applies a bilateral filter, without the slack of float arithmetic. */
MUST_CHECK operation_apply bilateral_apply;

/* Finds the edges of a canny: full scale for what is an edge, half of it for what may be one, or 0.
 * The slack is full scale if the rounding of another right computation decides which of them it
 * is. */
MUST_CHECK operation_apply canny_apply;

#endif
