/* Error bounds for sums of half floats. */
#ifndef DEVICE_PLAN_HALF_ERROR_H
#define DEVICE_PLAN_HALF_ERROR_H

#include "common/kernels.h"

/* The largest error, in levels of a byte, of a kernel that sums half floats (WEIGHTS_HALF2) before
 * its final rounding. Each kernel's file derives its bound. Below 1, no result differs by more than
 * 1. Infinite if the kernel cannot handle the operation. */
double half_error_bound(enum kernel kernel, const struct operation *operation);

/* Rounds to the nearest half float and returns its bits. Too large values become infinite. */
uint32_t half_bits(double value);

#endif
