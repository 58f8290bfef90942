/* The device worker: tiles in by socket, answers out, on one device. */
#ifndef DEVICE_WORKER_H
#define DEVICE_WORKER_H

#include "device/plan/programs.h"
#include "device/tuner.h"

struct worker;

/* Where a worker finds and keeps things; each folder may be NULL. */
struct worker_options {
	unsigned platform, device; /* indices, as OpenCL lists them */
	const char *kernel_dir;    /* sources to use instead of those in the program */
	const char *cache_dir;     /* compiled programs */
	uint64_t cache_size;       /* of which there are so many bytes at most; 0: no bound */
	const char *state_dir;     /* what was measured */
	unsigned stack_most;       /* tiles that may share a launch, 1 to STACK_MAX */
	unsigned programs_most;    /* special programs in memory; 0: as many as usual */
};

/* Makes a worker for a device, which must outlive it. Programs are made later: those that the first
 * tile needs before all others. */
enum error worker_new(const struct device *device, const struct worker_options *options, int socket,
                      struct worker **worker) MUST_CHECK;
void worker_free(struct worker **worker);

/* How many tiles it can work on at once. */
uint32_t worker_lanes(const struct worker *worker);
/* How many tiles of a kind may share a launch. */
uint32_t worker_stack_most(const struct worker *worker);
struct tuner *worker_tuner(const struct worker *worker);

/* Serves messages until the front closes the socket (ERR_OK), or until the device or the socket
 * can no longer be relied upon. */
enum error worker_run(struct worker *worker) MUST_CHECK;

#endif
