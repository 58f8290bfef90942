/* Gauges that nobody keeps up to date: they are looked at when the metrics are asked for. */
#ifndef FRONT_API_GAUGES_H
#define FRONT_API_GAUGES_H

#include <stdbool.h>

#include "front/config/config.h"

/* The configuration has just been read for the first time. Every error that a request can be
 * answered with has its counter from now on, so that the first one is seen as an increase. */
void gauges_init(const struct config *config);

/* The configuration has been read again; it was valid or not. */
void gauges_reloaded(bool valid);

/* Looks. ready: what /readyz would say. */
void gauges_update(bool ready);

#endif
