/* What filters cost, and each device's load and speed, by its number. The scheduler predicts times
 * from these. */
#ifndef FRONT_WORKERS_DEVICE_LOAD_H
#define FRONT_WORKERS_DEVICE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

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

/* Work is in units of one multiply-add. Adds a device, with an initial speed and no work; it takes
 * no tiles yet. */
void load_start(unsigned device, double ns_per_unit);
/* Sets whether the device takes tiles. */
void load_open(unsigned device, bool takes);
/* Adds the work of a tile given to the device (negative: of one that is back); or clears all. */
void load_add(unsigned device, double units);
void load_clear(unsigned device);

/* Updates the device's estimated speed: it took `ns` nanoseconds for this work. */
void load_learn(unsigned device, double units, uint64_t ns);
double load_ns_per_unit(unsigned device);

/* Predicts the time in nanoseconds for all the device's work. */
double load_ns(unsigned device);

/* Returns the one of the first `devices` that would finish this additional work first; `devices` if
 * none takes tiles. allowed: a bit for each device that may be chosen, or 0 for any. */
unsigned load_soonest(unsigned devices, double units, uint64_t allowed);

/* Predicts the time in nanoseconds if all devices that take tiles share this work; 0 if none
 * does. */
double load_together(unsigned devices, double units);

#endif
