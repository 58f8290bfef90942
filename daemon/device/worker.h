/* The device worker: receives tiles on a socket, filters them on a device, sends the answers. */
#pragma once

#include "device/plan/programs.h"
#include "device/tuner.h"
#include "process/start.h"

struct worker;

/* Makes a worker for a device as described by `start`; both must outlive it. An empty directory:
 * none. The caller keeps the socket. Programs are compiled later, first those that the first tile
 * needs. ERR_DEVICE or ERR_MEMORY, logged. */
enum error worker_new(const struct device *device, const struct start *start, int socket,
                      struct worker **worker) MUST_CHECK;
void worker_free(struct worker **worker);

/* Fills in what READY says, but for the time. */
void worker_describe(const struct worker *worker, struct message_ready *ready);
struct tuner *worker_tuner(const struct worker *worker);

/* Handles messages until the front closes the socket (ERR_OK), or device or socket are in doubt. */
enum error worker_run(struct worker *worker) MUST_CHECK;
