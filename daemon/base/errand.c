/* Errands: one thread for each kind, so that a hung disk does not delay the freeing of memory. A
 * thread touches nothing but the errands sent to it, which travel in lock-free stacks. */
#include "base/errand.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/loop.h"

enum {
	QUICK_BLOCKS = (8 << 10) / 512, /* a file is freed as quickly as an errand is sent */
	CLOSINGS_MAX = 64,
	LAST_WAIT_S = 1,
};

typedef struct errand *_Atomic errand_stack;

static struct runner {
	errand_stack sent;
	int wake; /* eventfd: errands were sent, or stopping is set */
	pthread_t thread;
	bool running;
	void (*batch)(struct errand *batch); /* NULL: each errand runs alone */
} runners[ERRAND_KINDS];

static errand_stack finished;
static struct errand *finishing;              /* in finish_one() */
static struct loop_watch finish = {.fd = -1}; /* eventfd: some have finished */
static atomic_bool stopping;

static void push(errand_stack *stack, struct errand *errand)
{
	errand->next = atomic_load(stack);
	while (!atomic_compare_exchange_weak(stack, &errand->next, errand))
		continue;
}

/* Empties a stack; returns its errands in the order in which they were pushed. */
static struct errand *pop_all(errand_stack *stack)
{
	struct errand *errand = atomic_exchange(stack, NULL), *first = NULL;

	while (errand) {
		struct errand *next = errand->next;

		errand->next = first;
		first = errand;
		errand = next;
	}
	return first;
}

static void *run(void *context)
{
	struct runner *runner = context;

	while (!atomic_load(&stopping)) {
		struct errand *errand = pop_all(&runner->sent);

		if (!errand)
			loop_await(runner->wake);
		if (errand && runner->batch)
			runner->batch(errand);
		while (errand) {
			struct errand *next = errand->next;

			if (!runner->batch)
				errand->run(errand);
			push(&finished, errand);
			if (runner != &runners[ERRAND_CLOSE])
				loop_post(finish.fd);
			errand = next;
		}
	}
	return NULL;
}

void errands_batch(enum errand_kind kind, void (*batch)(struct errand *batch))
{
	runners[kind].batch = batch;
}

/* Continues in the loop after an errand, which may have been sent again. */
static void finish_one(struct errand *errand)
{
	void (*wake)(void *);

	errand->under_way = false;
	finishing = errand;
	if (errand->done)
		errand->done(errand);
	finishing = NULL;
	if (errand->under_way)
		return;
	wake = errand->wake;
	errand->wake = NULL;
	if (errand->abandoned)
		errand->free(errand);
	else if (wake)
		wake(errand->context);
}

static void finish_all(void)
{
	struct errand *errand = pop_all(&finished);

	while (errand) {
		struct errand *next = errand->next;

		finish_one(errand);
		errand = next;
	}
}

static void some_finished(void *)
{
	loop_await(finish.fd);
	finish_all();
}

void errand_send(enum errand_kind kind, struct errand *errand)
{
	errand->under_way = true;
	if (!runners[kind].running) {
		errand->next = NULL;
		(runners[kind].batch ? runners[kind].batch : errand->run)(errand);
		finish_one(errand);
		return;
	}
	push(&runners[kind].sent, errand);
	loop_post(runners[kind].wake);
}

bool errand_await(struct errand *errand, void (*wake)(void *context), void *context)
{
	if (!errand->under_way)
		return false;
	errand->wake = wake;
	errand->context = context;
	return true;
}

void errand_abandon(struct errand *errand)
{
	errand->abandoned = true;
	if (!errand->under_way && errand != finishing)
		errand->free(errand);
}

/* Files of one turn of the loop, which one errand closes. */
struct closings {
	struct errand errand; /* first member: freeing it frees both */
	int count, fd[CLOSINGS_MAX];
};

static struct closings *closings; /* to be sent by errands_turn() */

static void close_all(struct errand *errand)
{
	const struct closings *c = (struct closings *)errand;

	for (int i = 0; i < c->count; i++)
		close(c->fd[i]);
}

static void free_closings(struct errand *errand)
{
	free(errand);
}

static void send_closings(void)
{
	errand_send(ERRAND_CLOSE, &closings->errand);
	closings = NULL;
}

void errand_close(int fd)
{
	struct stat status;
	bool quick = fstat(fd, &status) || status.st_blocks <= QUICK_BLOCKS;

	if (!quick && closings && closings->count == CLOSINGS_MAX)
		send_closings();
	if (!quick && !closings && (closings = malloc(sizeof *closings))) {
		closings->errand =
		    (struct errand){.run = close_all, .free = free_closings, .abandoned = true};
		closings->count = 0;
	}
	if (quick || !closings)
		close(fd);
	else
		closings->fd[closings->count++] = fd;
}

void errands_turn(void)
{
	if (!closings)
		return;
	finish_all(); /* those of earlier turns, which wake nobody */
	send_closings();
}

enum error errands_init(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	enum error e = fd < 0 ? ERR_IO : loop_watch(&finish, fd, EPOLLIN, some_finished, NULL);

	for (int kind = 0; !e && kind < ERRAND_KINDS; kind++) {
		struct runner *r = &runners[kind];

		r->wake = eventfd(0, EFD_CLOEXEC);
		r->running = r->wake >= 0 && !pthread_create(&r->thread, NULL, run, r);
		e = r->running ? ERR_OK : ERR_IO;
	}
	return e;
}

void errands_fini(void)
{
	struct timespec until;

	errands_turn();
	atomic_store(&stopping, true);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LAST_WAIT_S;
	for (int kind = 0; kind < ERRAND_KINDS; kind++) {
		if (!runners[kind].running)
			continue;
		loop_post(runners[kind].wake);
		if (!pthread_clockjoin_np(runners[kind].thread, NULL, CLOCK_MONOTONIC, &until))
			runners[kind].running = false;
	}
}
