/* The cost of filters in multiply-adds, from which the scheduler predicts times. */
#ifndef FRONT_WORKERS_COST_H
#define FRONT_WORKERS_COST_H

#include "common/chain.h"

/* The chain's multiply-adds for a sample, without halos. */
double cost_per_sample(const struct chain *chain);

/* Multiply-adds for each band of a result of this size. Each filter also computes the halo that
 * later filters need, which is most of the work when a result is small and its windows are
 * large. */
double cost_of_area(const struct chain *chain, uint32_t width, uint32_t height);

#endif
