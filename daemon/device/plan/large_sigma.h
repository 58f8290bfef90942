/* Gaussians of large sigma, on a lattice of points (filters/lattice.h). */
#ifndef DEVICE_PLAN_LARGE_SIGMA_H
#define DEVICE_PLAN_LARGE_SIGMA_H

#include "device/plan/builder.h"

/* Appends the steps of an operation that has a lattice. The result has the current pixel type.
 * keep: bit b leaves band b unchanged. ERR_MEMORY or ERR_DEVICE. */
enum error large_sigma_add(struct builder *builder, const struct operation *op,
                           uint32_t keep) MUST_CHECK;

#endif
