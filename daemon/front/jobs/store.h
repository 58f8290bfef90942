/* The asynchronous jobs, open and ended, by id, and those who wait for news of them.
 *
 * An ended job is kept, with its result, for `result-time`. When there are more of them, or larger
 * ones, than the configuration allows, the oldest of the client that holds most make room. */
#ifndef FRONT_JOBS_STORE_H
#define FRONT_JOBS_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/config/config.h"
#include "front/jobs/job.h"
#include "front/jobs/shares.h"

/* Somebody who waits for news; embedded where it is used. */
struct waiter {
	void (*wake)(void *context); /* called from the loop; only to note that there are news */
	void *context;
	uint64_t due; /* loop_now() when it is woken in any case */
	struct waiter *next, **link;
};

enum stored_state {
	STORED_WAITING,
	STORED_RUNNING,
	STORED_DONE,
	STORED_FAILED,
	STORED_CANCELLED,
	STORED_STATES
};

struct stored {
	struct stored *next, **link;
	struct job *job;
	uint64_t arrived; /* loop_now() when its request came */
	/* Once it has ended: 1, the bytes of its result, and what of them lies in memory. */
	struct share place, size, memory;
	struct waiter *waiters;
	enum stored_state told_state; /* what the waiters last heard */
	uint32_t told_tiles;
	char id[];
};

/* ended: called when a job has ended, however it did. */
enum error store_init(const struct config *config,
                      void (*ended)(const char *id, const struct job *job)) MUST_CHECK;
void store_fini(void);

/* Keeps a new job under an id that cannot be guessed, and submits it. The reference is the store's
 * from now on, also on failure. NULL without memory. */
struct stored *store_add(const char *id, struct job *job, uint64_t arrived);

/* The job of this id, or NULL. Good until the next event of the loop. */
struct stored *store_find(const char *id);

enum stored_state stored_state(const struct stored *s);
bool stored_ended(const struct stored *s);

/* Tiles that are back; all of them once the job is done. */
uint32_t stored_tiles_done(const struct stored *s);

/* An estimate of the nanoseconds until an open job has ended. False as long as there is none. */
bool stored_time_left(const struct stored *s, uint64_t *ns);

/* Nanoseconds for which an ended job is still kept, unless others need its place. */
uint64_t stored_kept_for(const struct stored *s);

/* Cancels an open job, of which no tile is begun any more; forgets one that has ended. */
void store_delete(struct stored *s);

/* Wakes the waiter, once, at the job's next news (its state or a tile, but at most four times a
 * second before the end), when it is forgotten, or at `due`. */
void store_wait(struct stored *s, struct waiter *waiter, uint64_t due);

/* The waiter, which may be waiting or not, no longer does. */
void waiter_leave(struct waiter *waiter);

/* Ends the waiting, if it does, and wakes it. */
void waiter_wake(struct waiter *waiter);

#endif
