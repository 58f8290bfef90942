/* A job: one image on its way through a codec worker and the devices. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "front/jobs/admission.h"
#include "front/jobs/fair.h"
#include "front/jobs/plans.h"
#include "front/jobs/shares.h"
#include "front/jobs/spool.h"
#include "front/jobs/trace.h"
#include "wire/wire.h"

struct codec;
struct job;

/* One tile of a job, from the message that announces it until its codec worker has it back. */
struct task {
	/* In the scheduler's queue; `units` is the cost. Must be the first member. */
	struct fair_item item;
	struct tile tile;
	struct job *job;
	const struct plan *plan;
	unsigned attempts; /* number of devices that have had it */
	unsigned excused;  /* those of them that another tile killed */
	uint64_t prefer;   /* bits of the devices that should run it if one is up; 0: any */
	uint64_t devices;  /* bits of the devices that may run it; 0: any */
	unsigned device;   /* number of the last one */
	uint32_t wait_ms;  /* the longest wait for a program there; 0: not waiting */
	bool waited;       /* it waits for a program, or has waited */
	uint64_t sent;     /* loop_now() when a device got it */
	uint64_t worked;   /* its worker's processor time (struct stall) then, as last seen */
	double units;      /* predicted work: multiply-adds of all bands, including halos */
};

enum priority { PRIORITY_INTERACTIVE, PRIORITY_BATCH, PRIORITIES };

/* The side that decodes and encodes JPEGs if it can; any: the one expected to finish first. */
enum jpeg_by { JPEG_BY_ANY, JPEG_BY_CPU, JPEG_BY_GPU };

/* A job's conditions, and its client. */
struct job_terms {
	enum priority priority;
	uint64_t deadline; /* loop_now() by which the answer must be complete; 0: no deadline */
	char client[FAIR_CLIENT_SIZE]; /* an address, or (named) a token's name */
	bool named;
	bool presets_only;
	enum priority best; /* the highest priority that it may have */
	double share;       /* its weight relative to other clients; 0: 1 */
	uint64_t devices;   /* a bit for each device that may be used; 0: any */
	enum jpeg_by codec;
	struct trace trace; /* for the log, like the route */
	const char *route;
	bool stripped; /* curl -d has damaged its body */
};

/* Times in nanoseconds; stages overlap, so the sum may exceed the total. */
struct job_times {
	uint64_t accepted, started, finished; /* loop_now() */
	uint64_t began;                       /* loop_now() when this run began */
	uint64_t routed;                      /* see jpeg_router.c; 0: not to be learned from */
	uint64_t queued, out; /* loop_now() when it was queued, or had tiles out; 0: neither */
	uint64_t queue;       /* in the queue, of all runs */
	uint64_t away;        /* with tiles at the scheduler and devices, of finished turns */
	uint64_t compile;     /* the part of it with tiles waiting for a program */
	uint64_t wait;        /* set at its end: time that no other member accounts for */
	uint64_t decode, encode, verify, reference, upload, download;
	uint64_t kernel[KERNELS];
};

struct job {
	uint64_t id;
	unsigned references;
	bool finished;
	/* The message to the codec worker. `job` is the number of the run, for the first run the
	 * job's id; messages with an earlier run's number are out of date. */
	struct message_job options;
	struct job_terms terms;
	struct loop_timer deadline; /* if the terms have a deadline */
	enum work_class class;
	double cost;              /* as charged by admission */
	double spent;             /* the part of it spent by runs that gathered */
	double verify_units;      /* this run's; see reference_cost() */
	struct fair_item item;    /* its flow in the queue of jobs that wait for a codec worker */
	struct fair_flow waiting; /* its item there */
	struct fair_flow tasks;   /* its tasks in the scheduler's queue */
	/* The requested chain, with the numbers that runs have gathered; this run's chain. */
	struct shared_chain *asked, *chain;
	/* the numbers that this run gathers; GATHER_NONE: it makes the answer */
	struct gathering gathering;
	uint32_t gather_channels; /* enum channels, for a call on which it does */
	struct spool body, answer;
	struct share place;  /* one of SHARE_JOBS */
	struct share memory; /* its body's */

	struct codec *codec; /* the worker that runs it, or NULL */
	unsigned deaths;     /* number of workers that died while they had it */
	unsigned excused;    /* number of these that something else killed */
	bool image_known;
	/* If image_known: the decoded image, and the part that is filtered. */
	struct image whole, image;
	uint32_t pages; /* in the body */
	enum format input_format;
	uint32_t tiles, tiles_done;        /* in this run */
	uint32_t tiles_before;             /* in runs that gathered */
	enum jpeg_reason jpeg[JPEG_SIDES]; /* why no device does this side; NONE: one does */
	enum tile_form jpeg_form;          /* sides that a device could do */
	bool jpeg_by_device;               /* a device was chosen for these */
	unsigned jpeg_device;              /* number of the one that has done a side */
	unsigned tiles_waiting;            /* tiles that wait for a program */
	uint64_t tiles_waited;             /* loop_now() when that number last changed */
	uint64_t devices_used;             /* a bit for each device that filtered a tile */
	struct job_times times;
	struct {
		uint64_t samples, mismatches;
		double largest;
	} verified; /* sums over its tiles */

	enum error error; /* the outcome */
	struct problem problem;
	enum format format;
	struct image result;
	uint32_t lost;        /* bit (1 << enum loss) for each */
	uint64_t answer_size; /* bytes, as its worker reports */

	void (*done)(struct job *job, void *context); /* NULL: nobody is interested any more */
	void *context;
};

/* The modules that work on jobs. */
struct job_owner {
	/* A job has been queued. */
	void (*waiting)(void);
	/* A job that is not in the queue any more is being cancelled. */
	void (*cancelled)(struct job *job);
};

void jobs_init(const struct job_owner *owner);

/* Creates a job from a checked chain (owned from now on, also on failure) and a settled body, which
 * moves into it. NULL without memory or descriptors. */
struct job *job_new(struct chain *chain, struct spool *body);
/* Creates a job without a chain, which cannot be submitted. NULL without memory. */
struct job *job_new_empty(void) MUST_CHECK;
void job_hold(struct job *job);
void job_release(struct job *job);

/* Jobs that wait or run, those of them that wait, and those that have ended since the start. */
struct jobs_count {
	unsigned open, waiting;
	uint64_t ended;
};
struct jobs_count jobs_count(void);

/* Returns true unless the job is light. Heavy jobs leave some codec workers free. */
bool job_is_heavy(const struct job *job);

/* Notes the reason for all sides of jpeg_form. */
void job_set_jpeg(struct job *job, enum jpeg_reason reason);

/* Charges the job's cost, now better known, and may change its class. ERR_MEMORY: it cannot be
 * queued again, and must be ended. */
enum error job_reckon(struct job *job, double cost) MUST_CHECK;

/* Counts a job that will be submitted among the jobs. ERR_MEMORY. */
enum error job_take_place(struct job *job) MUST_CHECK;

/* Queues the job, whose options and terms are set. `done` is called once, when the job has ended in
 * any way; the caller keeps its reference. ERR_MEMORY: it is not queued. */
enum error job_submit(struct job *job, void (*done)(struct job *job, void *context),
                      void *context) MUST_CHECK;

/* Discards the results of the job's run and puts it back at the head of the queue. No codec worker
 * may hold it, and none of its tasks may wait in the scheduler's queue. */
void job_restart(struct job *job);

/* Puts the job back like job_restart(), but keeps its work: this run has gathered the numbers that
 * the chain needs next, as many as job_gathers(). ERR_MEMORY: it must be ended. */
enum error job_go_on(struct job *job, const double *numbers) MUST_CHECK;

/* Turns the chain's shares of the image into pixels, once the image's size is known. The run must
 * then be restarted. Errors as for chain_size_to(); nothing has then changed. */
enum error job_size_to(struct job *job, const struct image *image,
                       struct problem *problem) MUST_CHECK;

/* The number of a body's `pages` that are filtered. */
uint32_t job_pages_read(const struct job *job, uint32_t pages);

/* Returns the count of numbers that this run gathers from all pages; 0: it makes the answer. */
uint64_t job_gathers(const struct job *job);

/* Counts tiles of all runs: finished ones, and all; a future run counts as many as this one. */
uint32_t job_tiles_done(const struct job *job);
uint32_t job_tiles(const struct job *job);

/* True if the task's run of its job is still the current one. */
bool task_is_current(const struct task *task);

/* Records that a tile of the job, of any run, waits for a program (1), or no longer does (-1). */
void job_waits(struct job *job, int more);

/* Records that none of the job's tiles is at the scheduler and devices any more (see times.out). */
void job_back(struct job *job);

/* Removes this job from the queue; false if it is not waiting. */
bool job_leave_queue(struct job *job);

/* Removes and returns the next waiting job of these classes (bits), or NULL. */
struct job *job_next_waiting(unsigned classes);

/* Ends a job: records the outcome and calls `done`. Only the first call counts. */
void job_finish(struct job *job, enum error error, const struct problem *problem);

/* Ends a job that may still wait or run. Its owner is told at once; workers drop it soon after. */
void job_cancel(struct job *job, enum error error, const struct problem *problem);
