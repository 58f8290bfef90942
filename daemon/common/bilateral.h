/* The bilateral filter on a canvas. */
#ifndef COMMON_BILATERAL_H
#define COMMON_BILATERAL_H

#include "common/canvas.h"

/* As canvas_apply(), less the slack of float arithmetic. */
void canvas_bilateral(const struct operation *operation, const struct scale *scale, bool weighed,
                      const struct canvas *in, struct canvas *out);

#endif
