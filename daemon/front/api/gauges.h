/* Gauges that are not kept up to date but read when the metrics are requested. */
#ifndef FRONT_API_GAUGES_H
#define FRONT_API_GAUGES_H

#include <stdbool.h>

#include "front/config/config.h"

/* Call after the configuration was first read; ready() is the answer of /readyz. Creates a counter
 * for every error that an answer can have, so that the first error shows as an increase. */
void gauges_init(const struct config *config, bool (*ready)(void));

/* Call after the configuration was read again; says whether it was valid. */
void gauges_reloaded(bool valid);

/* Reads the gauges. */
void gauges_update(void);

#endif
