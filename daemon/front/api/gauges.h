/* Gauges that are not kept up to date but read when the metrics are requested. */
#pragma once

#include <stdbool.h>

/* Call after the configuration was first read. Creates a counter for every error that an answer can
 * have, so that the first error shows as an increase. */
void gauges_init(void);

/* Call after the configuration was read again; says whether it was valid. */
void gauges_reloaded(bool valid);

/* Reads the gauges; ready: the answer of /readyz. */
void gauges_update(bool ready);
