/* The error of sums of half floats. */
#ifndef DEVICE_PLAN_HALF_ERROR_H
#define DEVICE_PLAN_HALF_ERROR_H

#include "common/kernels.h"

/* The most, in levels of bytes, by which a kernel that sums halves (WEIGHTS_HALF2) can be off
 * before its last rounding, as its file derives it; below 1, no result is wrong by more than 1.
 * Infinite for what it cannot do at all. */
double half_error_bound(enum kernel kernel, const struct operation *operation);

/* The half float nearest to a value, as its bits. What is too large becomes infinite. */
uint32_t half_bits(double value);

#endif
