/* The cost of filters in multiply-adds; the scheduler predicts times from it. */
#ifndef FRONT_WORKERS_COST_H
#define FRONT_WORKERS_COST_H

#include "filters/chain.h"
#include "wire/tile.h"

/* Counts the multiply-adds of the chain for one sample, without halos. */
double cost_per_sample(const struct chain *chain);

/* Counts the multiply-adds of the chain for one band of a result of this size. Each filter also
 * computes the halo that later filters need, which dominates when a result is small and windows are
 * large. */
double cost_of_area(const struct chain *chain, uint32_t width, uint32_t height);

/* Converts the time for these sides of the image as JPEGs on a device to multiply-adds. */
double cost_of_jpeg(const struct image *image, enum tile_form form);

#endif
