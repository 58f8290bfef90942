/* The device worker: receives tiles on a socket, filters them on one device, and sends the
 * answers. */
#ifndef DEVICE_WORKER_H
#define DEVICE_WORKER_H

#include "device/plan/programs.h"
#include "device/tuner.h"

struct worker;

/* A worker's device, directories and limits; each directory may be NULL. */
struct worker_options {
	unsigned platform, device; /* indices, as OpenCL lists them */
	const char *kernel_dir;    /* kernel sources to use instead of the built-in ones */
	const char *cache_dir;     /* compiled programs */
	uint64_t cache_size;       /* maximum bytes of these; 0: no limit */
	const char *state_dir;     /* measurements */
	unsigned stack_max;        /* tiles that may share a launch, 1 to STACK_MAX */
	unsigned programs_max;     /* special programs in memory; 0: the default */
	uint64_t jpeg_memory;      /* bytes of the device's for tiles with scans; 0: none */
};

/* Makes a worker for a device, which must outlive it. The caller keeps the socket. It compiles
 * programs later, first those that the first tile needs. ERR_DEVICE or ERR_MEMORY, logged. */
enum error worker_new(const struct device *device, const struct worker_options *options, int socket,
                      struct worker **worker) MUST_CHECK;
void worker_free(struct worker **worker);

/* Fills in what READY says, but for the time. */
void worker_describe(const struct worker *worker, struct message_ready *ready);
struct tuner *worker_tuner(const struct worker *worker);

/* Handles messages until the front closes the socket (ERR_OK), or the device or the socket cannot
 * be trusted any more. */
enum error worker_run(struct worker *worker) MUST_CHECK;

#endif
