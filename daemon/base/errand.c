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

/* A smaller file is freed within microseconds. */
enum { QUICK_BLOCKS = (1 << 20) / 512, LAST_WAIT_S = 1 };

typedef struct errand *_Atomic errand_stack;

static struct runner {
	errand_stack sent;
	int wake; /* eventfd: errands were sent, or stopping is set */
	pthread_t thread;
	bool running;
	void (*settle)(void); /* NULL: each errand is done at once */
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
		if (errand && runner->settle) {
			for (struct errand *e = errand; e; e = e->next)
				e->run(e);
			runner->settle();
		}
		while (errand) {
			struct errand *next = errand->next;

			if (!runner->settle)
				errand->run(errand);
			push(&finished, errand);
			loop_post(finish.fd);
			errand = next;
		}
	}
	return NULL;
}

void errands_settle(enum errand_kind kind, void (*settle)(void))
{
	runners[kind].settle = settle;
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

static void finish_all(void *context)
{
	struct errand *errand;

	(void)context;
	loop_await(finish.fd);
	errand = pop_all(&finished);
	while (errand) {
		struct errand *next = errand->next;

		finish_one(errand);
		errand = next;
	}
}

void errand_send(enum errand_kind kind, struct errand *errand)
{
	errand->under_way = true;
	if (!runners[kind].running) {
		errand->run(errand);
		if (runners[kind].settle)
			runners[kind].settle();
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

struct closing {
	struct errand errand; /* first member: freeing it frees both */
	int fd;
};

static struct errand *closings; /* to be sent by errands_turn() */

static void close_now(struct errand *errand)
{
	close(((struct closing *)errand)->fd);
}

static void free_closing(struct errand *errand)
{
	free(errand);
}

void errand_close(int fd)
{
	struct closing *c;
	struct stat status;

	if (fstat(fd, &status) || status.st_blocks <= QUICK_BLOCKS || !(c = malloc(sizeof *c))) {
		close(fd);
		return;
	}
	*c = (struct closing){.fd = fd};
	c->errand = (struct errand){
	    .next = closings, .run = close_now, .free = free_closing, .abandoned = true};
	closings = &c->errand;
}

void errands_turn(void)
{
	while (closings) {
		struct errand *errand = closings;

		closings = errand->next;
		errand_send(ERRAND_CLOSE, errand);
	}
}

enum error errands_init(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	enum error e = fd < 0 ? ERR_IO : loop_watch(&finish, fd, EPOLLIN, finish_all, NULL);

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
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LAST_WAIT_S;
	for (int kind = 0; kind < ERRAND_KINDS; kind++) {
		if (!runners[kind].running)
			continue;
		loop_post(runners[kind].wake);
		if (!pthread_timedjoin_np(runners[kind].thread, NULL, &until))
			runners[kind].running = false;
	}
}
