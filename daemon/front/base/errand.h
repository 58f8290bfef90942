/* Errands: work that may take long, because it waits for a disk or returns much memory to the
 * system, and therefore is not done in the loop. Threads do it: errands of one kind run in the
 * order in which they were sent. */
#ifndef FRONT_BASE_ERRAND_H
#define FRONT_BASE_ERRAND_H

#include "common/error.h"

enum errand_kind { ERRAND_WRITE, ERRAND_CLOSE, ERRAND_KINDS };

/* Embedded in the object that it is about, which a thread owns from errand_send() until `done`. */
struct errand {
	struct errand *next;
	void (*run)(struct errand *errand);  /* called in the thread */
	void (*done)(struct errand *errand); /* called in the loop afterwards */
};

/* Starts the threads; the loop must exist. Without threads, errands run where they are sent. */
enum error errands_init(void) MUST_CHECK;

/* Waits at most a second for running errands. No errand's `done` is called afterwards. */
void errands_fini(void);

void errand_send(enum errand_kind kind, struct errand *errand);

/* Closes a file of any size: at once if that is quick. Else it is done by an errand that leaves
 * with errands_turn(), so that others who have the same file open, and close it in this turn of the
 * loop, are not the last to do so. */
void errand_close(int fd);
void errands_turn(void);

#endif
