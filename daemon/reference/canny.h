/* The gradients of a canny on a canvas, and what of them may be edges. */
#ifndef REFERENCE_CANNY_H
#define REFERENCE_CANNY_H

#include "common/filters.h"
#include "reference/canvas.h"

/* As operations_apply(), for samples of this full scale, `whole` if they are integers: full scale,
 * half of it, or 0. Where it depends on the rounding of another right computation which of them it
 * is, the slack is full scale. */
enum error canny_apply(const struct operation *operation, double full, bool whole,
                       const struct canvas *in, struct canvas *out) MUST_CHECK;

#endif
