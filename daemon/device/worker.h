/* The device worker: tiles in by socket, answers out, on one device. */
#ifndef DEVICE_WORKER_H
#define DEVICE_WORKER_H

#include "device/programs.h"

struct worker;

/* Makes a worker for a device, which must outlive it, builds the general kernels and runs each
 * once, so that nothing is left to be prepared when the first tile comes. kernel_dir, cache_dir:
 * see programs_new(). */
enum error worker_new(const struct device *device, const char *kernel_dir, const char *cache_dir,
                      int socket, struct worker **worker) MUST_CHECK;
void worker_free(struct worker **worker);

/* How many tiles it can work on at once. */
uint32_t worker_lanes(const struct worker *worker);
struct programs *worker_programs(const struct worker *worker);

/* Serves messages until the front closes the socket (ERR_OK), or until the device or the socket
 * can no longer be relied upon. */
enum error worker_run(struct worker *worker) MUST_CHECK;

#endif
