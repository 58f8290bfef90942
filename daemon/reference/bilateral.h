/* The bilateral filter on a canvas. */
#ifndef REFERENCE_BILATERAL_H
#define REFERENCE_BILATERAL_H

#include "reference/canvas.h"

/* As canvas_apply(), less the slack of float arithmetic. */
void canvas_bilateral(const struct operation *operation, const struct scale *scale,
                      bool alpha_weighted, const struct canvas *in, struct canvas *out);

#endif
