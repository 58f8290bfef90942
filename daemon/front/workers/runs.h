/* Runs of jobs: how a codec worker gets a job, how it is rid of it again, and when the arena that
 * the two shared is free. */
#ifndef FRONT_WORKERS_RUNS_H
#define FRONT_WORKERS_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "front/config/config.h"
#include "front/jobs/job.h"
#include "front/workers/arenas.h"
#include "front/workers/supervisor.h"
#include "front/workers/verified.h"

enum { CODECS_MAX = ARENAS_MAX }; /* each has the arena of its number */

/* One that has been started. It is changed by runs.c, by codec_reports.c as its worker reports, and
 * by codecs.c as its process comes and goes. */
struct codec {
	struct worker worker;
	struct job *job;     /* that it works on; holds a reference */
	uint64_t dropped;    /* run of a job that has given way, until the worker has left it */
	uint64_t dropped_at; /* loop_now() */
	bool ending;         /* its last job is done, but for the end of the process */
	unsigned tasks;      /* that are not back */
	struct plan *plan;   /* that these go through, or NULL */
	uint32_t next_tile;  /* index that the next MSG_TILE must have */
	struct verified_tiles verified;
};

/* What the scheduler does for the codec workers. */
struct codec_owner {
	/* The most samples that a tile of this chain may have. */
	uint64_t (*samples_max)(const struct chain *chain);
	/* Nanoseconds that the devices together need for so many multiply-adds. */
	double (*device_ns)(double units);
	/* A tile is ready to be filtered; codec_task_done() will bring it back. */
	void (*task_ready)(struct task *task);
	/* A tile of this plan that this device has filtered by these kernels is not as it should
	 * be; has come out of it in two ways. */
	void (*doubted)(unsigned device, const struct plan *plan, uint64_t kernels);
	void (*distrusted)(unsigned device, const struct plan *plan, uint64_t kernels);
	/* The job has ended: its tasks that no device holds yet are to come back at once. */
	void (*job_ended)(struct job *job);
};

/* For codecs.c. By runs_fini() no process is left; jobs that still run end there. */
enum error runs_init(const struct config *config, const struct codec_owner *owner) MUST_CHECK;
void runs_fini(void);

/* Those that have ever been started. */
unsigned codecs_count(void);
struct codec *codec_get(unsigned i);

/* Adds one, with an arena and a number, whose process is the caller's to start. The count must be
 * below CODECS_MAX. */
enum error codec_open(struct codec **codec) MUST_CHECK;

/* True if more codec workers than this one's number are not configured. */
bool codec_is_surplus(const struct codec *codec);

/* Gives waiting jobs to idle codec workers. */
void runs_wake(void);

/* True if more heavy jobs run than may. */
bool runs_too_heavy(void);

/* Takes the job, of which nothing but the header has been read, from its worker. */
void codec_give_way(struct codec *codec);

/* Puts the worker's job back into the queue, to run from the start; devices may yet hold tiles of
 * this run. */
void codec_return_job(struct codec *codec);

/* Ends the worker's job; or (settle) as one that is done, if its answer is there: else false. */
void codec_end_job(struct codec *codec, enum error error, const struct problem *problem);
bool codec_settle_job(struct codec *codec);

/* To be called when something has come back that the worker or its arena was waited for: the arena
 * is free again when no task of the ended job is out. One that is stopped though it is not surplus
 * gets a new one. */
void codec_check_idle(struct codec *codec);

#endif
