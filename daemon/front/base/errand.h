/* Errands: what may take long, as it waits for a disk or gives much memory back to the system, and
 * so is not for the loop. Threads do them, those of a kind in the order in which they were sent. */
#ifndef FRONT_BASE_ERRAND_H
#define FRONT_BASE_ERRAND_H

#include "common/error.h"

enum errand_kind { ERRAND_WRITE, ERRAND_CLOSE, ERRAND_KINDS };

/* Embedded in what it is about, which a thread owns from errand_send() until `done`. */
struct errand {
	struct errand *next;
	void (*run)(struct errand *errand);  /* in the thread */
	void (*done)(struct errand *errand); /* then, in the loop */
};

/* Starts the threads; the loop must be there. Without them errands are run where they are sent. */
enum error errands_init(void) MUST_CHECK;

/* Waits for what is under way, for at most a second. No errand's `done` is called any more. */
void errands_fini(void);

void errand_send(enum errand_kind kind, struct errand *errand);

/* Closes a file of any size: at once if that is quick. Else it is done by an errand that leaves
 * with errands_turn(), so that others who have the same file open, and close it in this turn of the
 * loop, are not the last to do so. */
void errand_close(int fd);
void errands_turn(void);

#endif
