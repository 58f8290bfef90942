/* The asynchronous jobs, by id, and the waiters for their news. An ended job is stored, with its
 * result, for `result-time`. If results are too many or too large, the oldest ones of the client
 * that holds most are removed. */
#ifndef FRONT_JOBS_STORE_H
#define FRONT_JOBS_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

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
	TAILQ_ENTRY(stored) place;
	struct job *job;
	uint64_t arrived;                  /* loop_now() when its request arrived */
	struct share share[STORED_SHARES]; /* empty until its end */
	LIST_HEAD(waiters, waiter) waiters;
	enum stored_state told_state; /* last seen by its waiters */
	uint32_t told_tiles;
	char id[];
};

/* ended: called when a job has ended in any way. */
enum error store_init(void (*ended)(const char *id, const struct job *job)) MUST_CHECK;
void store_fini(void);

/* The number of jobs that are stored, ended ones included. */
unsigned store_count(void);

/* Stores a new job under an unguessable id, and submits it. Takes over the reference, also on
 * failure. NULL without memory. */
struct stored *store_add(const char *id, struct job *job, uint64_t arrived);

/* The job of this id, or NULL. Valid until the next event of the loop. */
struct stored *store_find(const char *id);

enum stored_state stored_state(const struct stored *s);

/* Counts finished tiles; all of them once the job is done. */
uint32_t stored_tiles_done(const struct stored *s);

/* Estimates the nanoseconds until an open job ends. False while there is no estimate. */
bool stored_time_left(const struct stored *s, uint64_t *ns);

/* Nanoseconds for which an ended job is still kept, unless others displace it. */
uint64_t stored_kept_for(const struct stored *s);

/* Cancels an open job, so that no more of its tiles begin; forgets one that has ended. */
void store_delete(struct stored *s);

/* Wakes the waiter, once, at the job's next news (its state or a tile, but at most four times a
 * second before the end), when it is forgotten, or at `due`. */
void store_wait(struct stored *s, struct waiter *waiter, uint64_t due);

/* Removes the waiter, which need not be waiting. */
void waiter_leave(struct waiter *waiter);

/* Wakes the waiter, and removes it if it waits. */
void waiter_wake(struct waiter *waiter);

#endif
