/* The front's threads as coroutines: one runs until it waits for an eventfd, or for the disk. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "sim.h"

enum { MOST = 8, STACK = 1 << 18 };

static struct thread {
	ucontext_t context;
	void *(*run)(void *);
	void *argument;
	bool ended, sleeps;
	int awaits; /* -1: nothing */
	uint64_t until;
} threads[MOST];
static unsigned count;
static struct thread *current;
static ucontext_t loop;

bool sim_in_thread(void)
{
	return current;
}

static void begin(void)
{
	current->run(current->argument);
	current->ended = true;
	swapcontext(&current->context, &loop);
}

static void resume(struct thread *t)
{
	if (t->ended)
		return;
	current = t;
	swapcontext(&loop, &t->context);
	current = NULL;
}

static void wait(void)
{
	struct thread *t = current;

	swapcontext(&t->context, &loop);
	current = t;
}

static void time_is_over(void *context, uint64_t until)
{
	struct thread *t = context;

	if (t->sleeps && t->until == until) {
		t->sleeps = false;
		resume(t);
	}
}

static void sleep_for(struct thread *t, uint64_t ns)
{
	t->sleeps = true;
	t->until = sim_now + ns;
	sim_after(ns, time_is_over, t, t->until);
}

void sim_thread_pause(uint64_t ns)
{
	if (!current)
		return;
	sleep_for(current, ns);
	wait();
}

void sim_thread_await(int fd)
{
	current->awaits = fd;
	wait();
	current->awaits = -1;
}

void sim_thread_wake(int fd)
{
	for (unsigned i = 0; i < count; i++)
		if (threads[i].awaits == fd && !threads[i].sleeps && &threads[i] != current)
			sleep_for(&threads[i], sim_while(SIM_MS));
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
	static char stacks[MOST][STACK] __attribute__((aligned(4096)));
	struct thread *t = &threads[count];

	(void)attributes;
	must(count < MOST);
	*t = (struct thread){.run = run, .argument = argument, .awaits = -1};
	must(!getcontext(&t->context));
	t->context.uc_stack.ss_sp = stacks[count];
	t->context.uc_stack.ss_size = STACK;
	makecontext(&t->context, begin, 0);
	*thread = count++;
	sleep_for(t, sim_while(SIM_MS));
	return 0;
}

int __wrap_pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock,
                                const struct timespec *until);

/* Only a disk that hangs takes longer. */
int __wrap_pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock,
                                const struct timespec *until)
{
	struct thread *t = &threads[thread];

	(void)value, (void)clock, (void)until;
	for (int i = 0; !t->ended && i < 10000; i++) {
		if (t->sleeps && t->until > sim_now)
			sim_now = t->until;
		t->sleeps = false;
		resume(t);
	}
	return t->ended ? 0 : ETIMEDOUT;
}

void sim_threads_reset(void)
{
	must(!current);
	count = 0;
}
