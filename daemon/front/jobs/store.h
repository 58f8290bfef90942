/* The asynchronous jobs, by id, and the waiters for their news. An ended job is stored, with its
 * result, for `result-time`. If results are too many or too large, the oldest ones of the client
 * that holds most are removed. With an archive all this outlives the process: news of a job is told
 * once it is on disk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "front/jobs/archive.h"
#include "front/jobs/job.h"
#include "front/jobs/shares.h"

/* A waiter for news; embedded in its struct. */
struct waiter {
	void (*wake)(void *context); /* called by the loop; should only record that there is news */
	void *context;
	uint64_t due; /* for store_wait() */
	bool waits;
	LIST_ENTRY(waiter) place;
};

enum stored_state {
	STORED_WAITING,
	STORED_RUNNING,
	STORED_DONE,
	STORED_FAILED,
	STORED_CANCELLED,
	STORED_STATES
};

/* A result's shares, of the kinds from SHARE_RESULTS on: 1, its bytes, and its bytes in memory. */
enum { STORED_SHARES = SHARE_KINDS - SHARE_RESULTS };

struct stored {
	struct archive_step step; /* the last change; must be first */
	struct record record;
	TAILQ_ENTRY(stored) place;
	struct job *job;                   /* without a chain if the archive has it from before */
	uint64_t arrived;                  /* loop_now() when its request arrived */
	struct share share[STORED_SHARES]; /* empty until its end */
	LIST_HEAD(waiters, waiter) waiters;
	enum stored_state told_state; /* last seen by its waiters */
	uint32_t told_tiles;
	bool under_way; /* the change; other changes follow it */
	bool stuck;     /* the change has failed, and is tried again */
	bool revives;   /* it is open, and its request has not been parsed since the start */
	bool hidden;    /* it is forgotten, or was never accepted: step.error is why */
	uint64_t again; /* loop_now() when it is tried again to revive it, end it or forget it */
	char id[];
};

/* The module that knows requests and answers. */
struct store_owner {
	/* A job has ended in any way. */
	void (*ended)(const char *id, const struct job *job);
	/* Writes the answer to a request for the result (see struct record). */
	void (*pack)(const struct stored *s, struct head_writer *answer);
	/* Makes a job of the record's head and the body of s->job, which moves. NULL with an error;
	 * ERR_NOT_READY: it is too early. */
	struct job *(*revive)(const struct stored *s, enum error *e, struct problem *problem);
};

/* Takes over the jobs of the archive. */
enum error store_init(const struct store_owner *owner) MUST_CHECK;
void store_fini(void);

struct store_survey {
	unsigned jobs;    /* all that are stored, ended ones included */
	unsigned lasting; /* open jobs that will run again after a restart */
	unsigned changes; /* those that are not on disk yet */
	uint64_t oldest;  /* age of the oldest open job in nanoseconds; 0: there is none */
};

struct store_survey store_survey(void);

/* The service is about to end: jobs of the archive go on after the next start, so nobody waits for
 * them any more, and all that do are woken. */
void store_leave(void);
bool store_is_leaving(void);

/* Stores a new job under an unguessable id, and submits it, with an archive once it is on disk.
 * Takes over the reference, also on failure, and the record's head; its key and digest are copied.
 * NULL without memory. */
struct stored *store_add(const char *id, struct job *job, uint64_t arrived, struct record *asked);

/* Return the job of this id, also one that is not shown, or the one of this client's key; or NULL.
 * Valid until the next event of the loop. */
struct stored *store_find_any(const char *id);
struct stored *store_find_key(const struct job_terms *terms, const char *key);

/* Returns false for a job that is forgotten, or is not promised yet: to clients it is not there. */
bool stored_is_shown(const struct stored *s);

/* Returns true if the job is this client's. */
bool stored_is_of(const struct stored *s, const struct job_terms *terms);

/* Returns the job after this one (NULL: the first) of those that are shown; NULL: none. */
struct stored *store_next(const struct stored *s);

enum stored_state stored_state(const struct stored *s);

/* True once the job has ended, and its result can be had. */
bool stored_ended(const struct stored *s);

/* Counts finished tiles; all of them once the job is done. */
uint32_t stored_tiles_done(const struct stored *s);

/* Estimates the nanoseconds until an open job ends. False while there is no estimate. */
bool stored_time_left(const struct stored *s, uint64_t *ns);

/* Nanoseconds for which an ended job is still kept, unless others displace it. */
uint64_t stored_kept_for(const struct stored *s);

/* Cancels an open job: no more of its tiles begin; forgets an ended one. It may be under way. */
void store_delete(struct stored *s);

/* Wakes the waiter, once, at the job's next news (its state or a tile, but at most four times a
 * second before the end; that a change is over), when it is forgotten, or at `due`. */
void store_wait(struct stored *s, struct waiter *waiter, uint64_t due);

/* Removes the waiter, which need not be waiting. */
void waiter_leave(struct waiter *waiter);

/* Wakes the waiter, and removes it if it waits. */
void waiter_wake(struct waiter *waiter);
