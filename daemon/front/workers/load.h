/* What each device has to do and how fast it is, by its number. */
#ifndef FRONT_WORKERS_LOAD_H
#define FRONT_WORKERS_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/* Work is in units, which are multiply-adds. A device that is new has none and takes no tiles. */
void load_start(unsigned device, double ns_per_unit);
/* Whether it takes tiles. */
void load_open(unsigned device, bool takes);
/* It has been given tiles with so much work, or (below 0) they are back; it has none. */
void load_add(unsigned device, double units);
void load_clear(unsigned device);

/* It has taken so long for so much: its estimated speed comes closer to that. */
void load_learn(unsigned device, double units, uint64_t ns);
double load_ns_per_unit(unsigned device);

/* Nanoseconds that it should need for all that it has. */
double load_ns(unsigned device);

/* Of so many devices, the one that would finish some more work first; `devices` if none takes
 * tiles. allowed: a bit for each that may be chosen, or 0 for any. */
unsigned load_soonest(unsigned devices, double units, uint64_t allowed);

/* Nanoseconds that all that take tiles would need for some work together; 0 if none does. */
double load_together(unsigned devices, double units);

#endif
