/* Coefficients in the formats that kernels take. */
#ifndef DEVICE_PLAN_WEIGHTS_H
#define DEVICE_PLAN_WEIGHTS_H

#include "device/plan/variant.h"

/* Makes the buffer of an operation's coefficients in a format, for blocks of `rows` rows (a margin
 * of WEIGHTS_PADDED). as_matrix: a separable operation's as the matrix that they are the product
 * of. *buffer is the caller's, and NULL for WEIGHTS_NONE. ERR_MEMORY or ERR_DEVICE. */
enum error weights_new(const struct device *device, const struct operation *operation,
                       enum weights format, bool as_matrix, uint32_t rows,
                       cl_mem *buffer) MUST_CHECK;

/* The weights of the kernels that shrink: the spline. And of those that grow:
 * weight[LATTICE_TAPS_MAX][LATTICE_STRIDE_MAX]. *buffer is the caller's. ERR_DEVICE. */
enum error weights_new_spline(const struct device *device, const struct lattice *lattice,
                              cl_mem *buffer) MUST_CHECK;
enum error weights_new_grow(const struct device *device, const struct lattice *lattice,
                            cl_mem *buffer) MUST_CHECK;

#endif
