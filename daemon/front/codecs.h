/* The codec workers as the front sees them: a process, an arena and at most one job each. */
#ifndef FRONT_CODECS_H
#define FRONT_CODECS_H

#include <stdbool.h>
#include <stdint.h>

#include "front/config.h"
#include "front/job.h"

/* The memory of one codec worker, for the devices to map. The descriptors stay the codec's. */
struct codec_arena {
	int in, in_read_only, out;  /* -1: none of it is open */
	uint64_t in_size, out_size; /* bytes */
};

enum { CODECS_MAX = 64 };

/* What the scheduler does for the codec workers. */
struct codec_owner {
	/* The most samples that a tile of this chain may have. */
	uint64_t (*samples_max)(const struct chain *chain);
	/* Nanoseconds that the devices together need for so many multiply-adds. */
	double (*device_ns)(double units);
	/* A tile is ready to be filtered; task->job->task_done() will bring it back. */
	void (*task_ready)(struct task *task);
	/* A tile of this plan that this device has filtered by these kernels is not as it should
	 * be; has come out of it in two ways. */
	void (*doubted)(unsigned device, const struct plan *plan, uint64_t kernels);
	void (*distrusted)(unsigned device, const struct plan *plan, uint64_t kernels);
	/* The job has ended: its tasks that no device holds yet are to come back at once. */
	void (*job_ended)(struct job *job);
	/* An arena is there from now on; an arena is closed, and its number may be used again. */
	void (*arena_opened)(unsigned arena);
	void (*arena_closed)(unsigned arena);
};

enum error codecs_init(const struct config *config, const struct codec_owner *owner) MUST_CHECK;
void codecs_fini(void);

/* Makes the codec workers as many as are configured now: starts some, or ends some, those that have
 * a job after that. */
void codecs_reload(void);

/* The i-th arena, NULL if it is not open; i is below CODECS_MAX. */
const struct codec_arena *codec_arena(unsigned i);

/* A process that cannot be ended may yet write to this arena: it is replaced by another. The job
 * that uses it runs once more, from the start. */
void codecs_retire(unsigned arena);

/* Ends a job with this error, at once for whoever waits for it; its codec worker and devices are
 * rid of it soon. */
void codecs_cancel(struct job *job, enum error error, const struct problem *problem);

/* Gives waiting jobs to idle codec workers. */
void codecs_wake(void);

#endif
