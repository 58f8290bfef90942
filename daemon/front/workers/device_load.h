/* Costs of filters and speeds of devices, from which the scheduler predicts times. */
#pragma once

#include "filters/chain.h"
#include "front/workers/device_table.h"
#include "wire/tile.h"

/* Counts the multiply-adds of the chain for one sample, without halos. */
double cost_per_sample(const struct chain *chain);

/* Counts the multiply-adds of the chain for one band of a result of this size, of such an image.
 * Each filter also computes the halo that later filters need, which dominates when a result is
 * small and windows are large. */
double cost_of_area(const struct chain *chain, const struct image *image, uint32_t width,
                    uint32_t height);

/* Converts a device's time for these sides of the image as JPEGs to multiply-adds. */
double cost_of_jpeg(const struct image *image, enum tile_form form);

/* Updates the device's estimated speed: it took `ns` nanoseconds for this work. */
void load_learn(struct load *load, double units, uint64_t ns);

/* Returns the device that would finish this additional work first, full or not; NULL if none is up.
 * allowed: a bit for each device that may be used, or 0 for any. */
struct device *load_soonest(double units, uint64_t allowed);

/* Predicts the time in nanoseconds if all devices that are up share this work; 0 if none is. */
double load_together(double units);

/* Returns the most samples in a tile of this chain: a millisecond's work for the slowest device. */
uint64_t load_samples_max(const struct chain *chain);
