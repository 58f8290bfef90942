/* A job: one image on its way through a codec worker and the devices. */
#ifndef FRONT_JOBS_JOB_H
#define FRONT_JOBS_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire.h"
#include "front/base/loop.h"
#include "front/jobs/admission.h"
#include "front/jobs/fair.h"
#include "front/jobs/plans.h"
#include "front/jobs/shares.h"
#include "front/jobs/spool.h"
#include "front/jobs/trace.h"

struct codec;
struct job;

/* One tile of a job, from the message that announced it until it is back with its codec worker. */
struct task {
	struct fair_item item; /* in the scheduler's queue; the cost is `units`, the first member */
	struct tile tile;
	struct job *job;
	const struct plan *plan;
	unsigned attempts; /* how many devices have had it */
	unsigned excused;  /* of these: that somebody else killed */
	uint64_t prefer;   /* bits of the devices that are to have it if one is up; 0: any */
	unsigned device;   /* number of the last of them */
	uint32_t wait_ms;  /* there, for a program, at most; 0: for none */
	bool waited;       /* it has, or has had to */
	uint64_t sent;     /* loop_now() when a device got it */
	uint64_t worked;   /* what its worker had worked by then (struct stall), at the last look */
	double units;      /* predicted work: multiply-adds of all bands, those of halos too */
};

enum priority { PRIORITY_INTERACTIVE, PRIORITY_BATCH, PRIORITIES };

/* How a job is to be treated, and whose it is. */
struct job_terms {
	enum priority priority;
	uint64_t deadline; /* loop_now() by which the answer must be complete; 0: no matter when */
	char client[FAIR_CLIENT_SIZE]; /* an address, or (named) what its token is called */
	bool named;
	enum priority best; /* the best priority that it may have */
	double share;       /* its weight beside other clients; 0: 1 */
	uint64_t devices;   /* a bit for each that may be used; 0: any */
	struct trace trace; /* for the log, like the route */
	const char *route;
	bool stripped; /* its body has been spoilt by curl -d */
};

/* Times in nanoseconds; stages overlap, so they may add up to more than the whole. */
struct job_times {
	uint64_t accepted, started, finished; /* loop_now() */
	uint64_t decode, encode, verify, reference, upload, download;
	uint64_t kernel[KERNELS];
};

struct job {
	uint64_t id;
	unsigned references;
	bool finished;
	/* What the codec worker is told; body_size and limits included. `job` is the number of the
	 * run, the first of which has the job's id: what a worker says of an earlier run is old. */
	struct message_job options;
	struct job_terms terms;
	struct loop_timer deadline; /* if the terms have one */
	enum work_class class;
	double cost;              /* as admission counts it */
	struct fair_item item;    /* in the queue of jobs that wait for a codec worker */
	struct fair_flow waiting; /* that item */
	struct fair_flow tasks;   /* its tasks in the scheduler's queue */
	struct shared_chain *chain;
	struct spool body, answer;
	struct share place;  /* while it waits or runs */
	struct share memory; /* of its body */

	struct codec *codec; /* that works on it, NULL if none does */
	unsigned deaths;     /* of workers that had it */
	unsigned excused;    /* of these: that somebody else killed */
	bool image_known;
	/* Once image_known: what was decoded, and what of it is filtered (the ROI, or all). */
	struct image whole, image;
	enum format input_format;
	uint32_t tiles, tiles_done;
	unsigned tiles_waiting; /* at devices, for a program */
	bool held;              /* so admission counts it */
	uint64_t devices_used;  /* bit of each device that filtered a tile */
	struct job_times times;
	struct {
		uint64_t samples, mismatches;
		double largest;
	} verified; /* sums over its tiles */

	enum error error; /* how it ended, and why */
	struct problem problem;
	enum format format;
	struct image result;
	uint32_t lost;        /* bit (1 << enum loss) for each */
	uint64_t answer_size; /* bytes, as its worker says */

	void (*done)(struct job *job, void *context);
	void *context;
};

/* Who works on the jobs. */
struct job_owner {
	/* A job has been queued. */
	void (*waiting)(void);
	/* A job that is not in the queue any more is being cancelled. */
	void (*cancelled)(struct job *job);
};

void jobs_init(const struct job_owner *owner);

/* Makes a job of a checked chain (owned from now on, also on failure) and a body (its content moves
 * into the job; the spool is then empty). NULL without memory or descriptors. */
struct job *job_new(struct chain *chain, struct spool *body);
void job_hold(struct job *job);
void job_release(struct job *job);

/* How many jobs are waiting or running, and how many of them wait; how many have ended since the
 * start. */
unsigned jobs_open(void);
unsigned jobs_waiting(void);
uint64_t jobs_ended(void);

/* A name of a priority, or PRIORITIES if it is none. */
enum priority priority_parse(const char *text);

/* True for a job of batch work or of much work: together these leave one codec worker free. */
bool job_is_heavy(const struct job *job);

/* More is known of what the job costs than the size of its body: it is charged for the rest, and
 * may now be of another class. ERR_MEMORY: it cannot be queued again, and is to be ended. */
enum error job_reckon(struct job *job, double cost) MUST_CHECK;

/* Queues the job, whose options and terms are set. `done` is called once, from the loop, when it
 * has finished, however it ended; the caller keeps its reference. ERR_MEMORY: it is not queued, and
 * `done` will not be called. */
enum error job_submit(struct job *job, void (*done)(struct job *job, void *context),
                      void *context) MUST_CHECK;

/* Forgets all that its run has led to, and puts it back into the queue, at its head. No codec
 * worker may have it, and no task of it wait in the scheduler's queue; those that devices hold are
 * of an old run from now on. */
void job_restart(struct job *job);

/* True if the run of the job that the task belongs to still goes on. */
bool task_is_current(const struct task *task);

/* A tile of the job, of any run, waits for a program (1), or does so no more (-1). */
void job_waits(struct job *job, int more);

/* The caller no longer wants to hear of the job. */
void job_forget(struct job *job);

/* Takes this job out of the queue; false if it is not waiting. */
bool job_leave_queue(struct job *job);

/* Takes the next waiting job out of the queue, or (light_only) the next that is not heavy, or NULL.
 */
struct job *job_next_waiting(bool light_only);

/* Ends a job: remembers the outcome and calls `done`. Only the first call counts. */
void job_finish(struct job *job, enum error error, const struct problem *problem);

/* The same, at once for whoever waits for it, of a job that may still wait or run; its codec worker
 * and devices are rid of it soon. */
void job_cancel(struct job *job, enum error error, const struct problem *problem);

#endif
