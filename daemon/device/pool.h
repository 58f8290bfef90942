/* Threads that launch steps on a device that works in the host's memory. If the driver runs a
 * launch in the thread that enqueues it (device->serial), there is a thread for each processor;
 * otherwise two threads keep the driver's own threads busy. Work is a list of steps, one after the
 * other, each cut into pieces (launch.h). A free thread takes the next piece of the work that has
 * the fewest threads, so small work runs beside large work. */
#pragma once

#include <stdatomic.h>
#include <sys/queue.h>

#include "device/plan/launch.h"
#include "wire/wire.h"

struct pool;

/* Owned by the caller, zeroed except for the first members, until it is done. */
struct pool_work {
	const struct step *step[LAUNCHES_MAX];
	uint32_t steps;
	const struct tile *tile;
	struct view *views; /* PLACES of them; those of scratch are laid out by the pool */
	bool quiet;         /* somebody waits for it: the eventfd is not written */

	/* Results: an OpenCL code, and for each step the device's nanoseconds: the times of its
	 * threads divided by their number, where each thread could do other work. */
	cl_int status;
	uint64_t ns[LAUNCHES_MAX];

	/* The pool's own. */
	TAILQ_ENTRY(pool_work) place;
	struct launch launch;
	enum { WORK_WAITS, WORK_BEGINS, WORK_RUNS } state; /* its step's */
	uint32_t at, pieces, taken, ended, threads;
	atomic_bool done;
};

/* Makes a pool. notify_fd: an eventfd that is written when work is done, or -1. Both must outlive
 * it. ERR_DEVICE or ERR_MEMORY, logged. */
enum error pool_new(const struct device *device, int notify_fd, struct pool **pool) MUST_CHECK;
/* Waits for running launches; no other work may be left. The pointer, NULL or not, becomes NULL. */
void pool_free(struct pool **pool);

/* Returns the number of threads; given enough work, each has work of its own. */
uint32_t pool_threads(const struct pool *pool);

/* Starts work, which must stay where it is until it is done. */
void pool_add(struct pool *pool, struct pool_work *work);
static inline bool pool_done(const struct pool_work *work)
{
	return atomic_load_explicit(&work->done, memory_order_acquire);
}
void pool_wait(struct pool *pool, const struct pool_work *work);

/* Runs one step and waits. Returns an OpenCL code; *ns: of the device. */
cl_int pool_run(struct pool *pool, const struct step *step, const struct tile *tile,
                struct view *views, uint64_t *ns) MUST_CHECK;
