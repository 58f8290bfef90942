/* Gaussians of large sigma, on a lattice of points (common/lattice.h). */
#ifndef DEVICE_PLAN_LARGE_SIGMA_H
#define DEVICE_PLAN_LARGE_SIGMA_H

#include "device/plan/builder.h"

/* Appends the steps of an operation that has a lattice: to its points, the filter between them, and
 * back to pixels of the type that they have now. keep: bit b: band b stays as it is. ERR_MEMORY or
 * ERR_DEVICE. */
enum error large_sigma_add(struct builder *builder, const struct operation *op,
                           uint32_t keep) MUST_CHECK;

#endif
