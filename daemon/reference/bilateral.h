/* The bilateral filter on a canvas. */
#ifndef REFERENCE_BILATERAL_H
#define REFERENCE_BILATERAL_H

#include "common/filters.h"
#include "reference/canvas.h"

/* As operations_apply(), for samples of this full scale, but without the slack of float
 * arithmetic. */
enum error bilateral_apply(const struct operation *operation, double full, bool alpha_weighted,
                           const struct canvas *in, struct canvas *out);

#endif
