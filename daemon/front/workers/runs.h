/* Runs of jobs: how a codec worker gets a job and leaves it, and when its arena is free again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "front/jobs/job.h"
#include "front/workers/arenas.h"
#include "front/workers/supervisor.h"
#include "front/workers/verified.h"

enum { CODECS_MAX = ARENAS_MAX }; /* worker i uses arena i */

/* A run of a job. */
struct codec_run {
	uint64_t worked;    /* the worker's processor time (struct stall) when it began */
	uint32_t next_tile; /* index of the next MSG_TILE */
	/* Devices that may have the job as one tile with scans, 0: none; and whether one has it. */
	uint64_t jpeg_devices;
	bool jpeg_out;
	bool answer_late;       /* MSG_ANSWER goes with the result of the only tile */
	uint64_t answer_pixels; /* a page's */
	/* Maximum size of an answer by a device, opened when its size is known; else 0. */
	uint64_t answer_max;
	struct verified_tiles verified;
};

/* A codec worker. Changed by runs.c, and by codecs.c as its worker reports, starts and ends. */
struct codec {
	struct worker worker;
	struct job *job; /* current job (holds a reference), or NULL */
	struct codec_run run;
	uint64_t dropped;    /* run that has given way, until the worker confirms; else 0 */
	uint64_t dropped_at; /* loop_now() */
	bool kept;           /* the last run's rows, for one that follows at once */
	bool ending;         /* its job is done once the process has ended */
	unsigned tasks;      /* tiles not back yet, of any run */
	struct plan *plan;   /* these tiles' plan, or NULL */
};

/* The scheduler's services for the codec workers. */
struct codec_owner {
	/* Takes a tile that is ready to be filtered; codec_task_done() returns it. */
	void (*task_ready)(struct task *task);
	/* Returns the tasks of an ended job that no device holds. */
	void (*job_ended)(struct job *job);
};

/* For codecs.c. runs_fini() ends open jobs; to be called when all processes have ended. */
void runs_init(const struct codec_owner *owner);
void runs_fini(void);

/* Returns a codec worker by its number, even if it takes no jobs any more; NULL after the last. */
struct codec *codec_get(unsigned i);

/* Adds codec workers until there are as many as configured. Fails as arenas_open(). */
enum error codecs_add(const struct worker_owner *owner) MUST_CHECK;

/* Gives waiting jobs to idle codec workers. */
void runs_wake(void);

/* The number of codec workers that take jobs. */
unsigned runs_workers(void);

/* True if more heavy jobs run than allowed. */
bool runs_too_heavy(void);

/* Queue the worker's job again, to run from the start: for a worker that has read only the image's
 * header and goes on with another job; for one that has ended. Devices may still hold tiles. */
void codec_give_way(struct codec *codec);
void codec_return_job(struct codec *codec);

/* codec_end_job() ends the worker's job. codec_settle_job() ends it as successful; returns false,
 * leaving the job open, if its answer is not complete. */
void codec_end_job(struct codec *codec, enum error error, const struct problem *problem);
bool codec_settle_job(struct codec *codec);

/* Must be called when a task or a process has ended. If the worker has neither job nor task, gives
 * it the next job, ends it if it is surplus, or replaces its arena if it is stopped. */
void codec_check_idle(struct codec *codec);
