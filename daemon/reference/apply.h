/* Operations in double precision: applies one operation to a canvas. */
#ifndef REFERENCE_APPLY_H
#define REFERENCE_APPLY_H

#include "filters/filters.h"
#include "image/image.h"
#include "reference/canvas.h"

/* The range and rounding of results. */
struct scale {
	const struct image *image; /* the whole one */
	double full;               /* full scale of the image's type */
	bool integers; /* the image's type is an integer: directions span its range, not radians */
	bool whole;    /* results are rounded to integers after each operation, which allows an
	                  error of half a count anyway */
};

/* Applies an operation, without offset and rounding. `in` extends beyond `out` by at least the
 * operation's radius, and has as many bands. alpha_weighted: the last band is alpha and weights the
 * others; where filtered alpha is 0 or less, colours are 0 (if it compares: unchanged). Returns
 * ERR_MEMORY on failure. */
enum error operations_apply(const struct operation *operation, const struct scale *scale,
                            bool alpha_weighted, const struct canvas *in,
                            struct canvas *out) MUST_CHECK;

/* Applies a bilateral filter, for samples of this full scale, without the slack of float
 * arithmetic. */
enum error bilateral_apply(const struct operation *operation, double full, bool alpha_weighted,
                           const struct canvas *in, struct canvas *out);

/* Finds the edges of a canny, never alpha-weighted: full scale for what is an edge, half of
 * it for what may be one, or 0. The slack is full scale if the rounding of another right
 * computation decides which of them it is. */
enum error canny_apply(const struct operation *operation, const struct scale *scale,
                       bool alpha_weighted, const struct canvas *in, struct canvas *out) MUST_CHECK;

#endif
