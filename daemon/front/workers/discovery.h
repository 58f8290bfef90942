/* The discovery of OpenCL devices, by a probe process, so that a driver that hangs or crashes when
 * it is asked for its devices does no harm here; and the choice among those found, by the patterns
 * of the option `device`. */
#ifndef FRONT_WORKERS_DISCOVERY_H
#define FRONT_WORKERS_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "front/config/config.h"
#include "front/workers/supervisor.h"

/* Begins a discovery. When that ends, and at each discovery_reload(), every device found is handed
 * to `see`, with whether any pattern fits it. If none does, it is repeated after a while. */
enum error discovery_init(const struct config *config,
                          void (*see)(const struct message_device *found, bool wanted)) MUST_CHECK;
void discovery_fini(void);

/* Chooses among the devices of the last discovery by the patterns that are configured now. */
void discovery_reload(void);

/* True once the first discovery has ended. */
bool discovery_done(void);
/* Milliseconds until the next discovery; 0: none is due. */
uint64_t discovery_next_try(void);

/* True if a pattern (see the option `device`) fits this device of the last discovery. */
bool discovery_fits(const char *pattern, const struct message_device *found);

/* cpu, gpu, accelerator or device. */
const char *discovery_type_name(enum device_type type);

/* Adds the arguments that every device process has, and its time to start. */
void discovery_arguments(struct worker *worker);

#endif
