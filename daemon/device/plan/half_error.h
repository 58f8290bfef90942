/* Error bounds for sums of half floats, and of integers of 16-bit weights. */
#pragma once

#include "filters/kernels.h"

/* Returns the largest error, in levels of a byte, of a kernel that sums these (WEIGHTS_HALF2,
 * _STRIPS) before its final rounding. Each kernel's file derives its bound. Below 1, no result
 * differs by more than 1. Infinite if the kernel cannot handle the operation. */
double half_error_bound(enum kernel kernel, const struct operation *operation);

/* Returns the exponent of the largest power of two by which a matrix may be multiplied for
 * WEIGHTS_STRIPS so that its weights fit 16 bits, and sums of their products 32. Below 1 if there
 * is none. */
int fixed_shift(const struct operation *operation);
