/* Errands: work that must not block the loop, because it waits for a disk or frees much memory. A
 * thread for each kind runs them in the order in which they were sent. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum errand_kind { ERRAND_WRITE, ERRAND_CLOSE, ERRAND_ARCHIVE, ERRAND_KINDS };

/* The first member of the object that the errand concerns. From errand_send() until `done`, the
 * part of that object that `run` uses belongs to the thread. */
struct errand {
	struct errand *next;
	/* `run` is called in the thread; `done` (or NULL) in the loop afterwards, where it may send
	 * the errand again; `free` in the loop, once the errand is abandoned and not under way. */
	void (*run)(struct errand *errand);
	void (*done)(struct errand *errand);
	void (*free)(struct errand *errand);
	bool under_way, abandoned;
	void (*wake)(void *context);
	void *context;
};

/* Starts the threads; the loop must exist. Before this, errands run inside errand_send(). */
enum error errands_init(void) MUST_CHECK;

/* Waits at most one second for running errands. Afterwards `done` is not called for any. */
void errands_fini(void);

void errand_send(enum errand_kind kind, struct errand *errand);

/* Makes all errands of a kind that wait at a time one batch, a list by `next`, which its thread
 * hands to this function instead of their own. To be called before errands_init(). */
void errands_batch(enum errand_kind kind, void (*run)(struct errand *batch));

/* True if the errand is under way; then calls `wake` at its end, unless it is abandoned before. */
bool errand_await(struct errand *errand, void (*wake)(void *context), void *context);

/* Frees it, once it is not under way. */
void errand_abandon(struct errand *errand);

/* Closes a file: at once if it is small, else by an errand that errands_turn() sends after other
 * holders of the file have closed theirs, because the last one to close frees the memory. */
void errand_close(int fd);
void errands_turn(void);
