/* Operations in double precision: applies one operation to a canvas. */
#ifndef REFERENCE_APPLY_H
#define REFERENCE_APPLY_H

#include "common/filters.h"
#include "common/image.h"
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

#endif
