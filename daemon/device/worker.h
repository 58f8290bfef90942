/* The device worker: receives tiles on a socket, filters them on one device, and sends the
 * answers. */
#ifndef DEVICE_WORKER_H
#define DEVICE_WORKER_H

#include "device/plan/programs.h"
#include "device/tuner.h"

struct worker;

/* Where a worker finds and stores things; each directory may be NULL. */
struct worker_options {
	unsigned platform, device; /* indices, as OpenCL lists them */
	const char *kernel_dir;    /* kernel sources to use instead of the built-in ones */
	const char *cache_dir;     /* compiled programs */
	uint64_t cache_size;       /* maximum bytes of these; 0: no limit */
	const char *state_dir;     /* measurements */
	unsigned stack_most;       /* tiles that may share a launch, 1 to STACK_MAX */
	unsigned programs_most;    /* special programs in memory; 0: the default */
};

/* Makes a worker for a device, which must outlive it. Programs are made later: those that the first
 * tile needs before all others. */
enum error worker_new(const struct device *device, const struct worker_options *options, int socket,
                      struct worker **worker) MUST_CHECK;
void worker_free(struct worker **worker);

/* The number of tiles in flight that it supports. */
uint32_t worker_lanes(const struct worker *worker);
/* The number of tiles of a kind that may share a launch. */
uint32_t worker_stack_most(const struct worker *worker);
struct tuner *worker_tuner(const struct worker *worker);

/* Handles messages until the front closes the socket (ERR_OK), or the device or the socket can no
 * longer be trusted. */
enum error worker_run(struct worker *worker) MUST_CHECK;

#endif
