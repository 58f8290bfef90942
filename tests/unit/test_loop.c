/* The loop of the front and of workers, and errands, which do not hold it up. */
#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/errand.h"
#include "base/loop.h"
#include "unit.h"

static struct loop_watch first, second;
static int pipes[2][2], called;

static void unwatch_other(void *context)
{
	loop_unwatch(context);
	called++;
}

static void stop(void *context)
{
	(void)context;
	called++;
	loop_stop();
}

static int stop_when_called(void)
{
	if (called)
		loop_stop();
	return called ? 0 : -1;
}

static int no_wait_limit(void)
{
	return -1;
}

/* Runs a loop with two watches that are both ready; each callback gets the other watch. */
static void run_with_two(loop_callback *callback, int (*turn)(void))
{
	called = 0;
	assert_int_equal(loop_init(), ERR_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe(pipes[i]), 0);
		assert_int_equal(write(pipes[i][1], "x", 1), 1);
	}
	assert_int_equal(loop_watch(&first, pipes[0][0], EPOLLIN, callback, &second), ERR_OK);
	assert_int_equal(loop_watch(&second, pipes[1][0], EPOLLIN, callback, &first), ERR_OK);
	loop_run(turn);
	loop_fini();
}

/* An event of a watch that an earlier callback of the same batch took away is not delivered. */
TEST(test_loop_unwatch)
{
	run_with_two(unwatch_other, stop_when_called);
	assert_int_equal(called, 1);
}

/* Nor is any once the loop was stopped. */
TEST(test_loop_stop)
{
	run_with_two(stop, no_wait_limit);
	assert_int_equal(called, 1);
}

/* If looks come every 0.5 s, the one after a pause of the loop itself is known as such; no other
 * is. */
TEST(test_loop_held_up)
{
	uint64_t looked = 0;

	assert_false(loop_held_up(&looked, 500));
	assert_false(loop_held_up(&looked, 500));
	looked -= 1000000000u;
	assert_false(loop_held_up(&looked, 500));
	looked -= 5000000000u;
	assert_true(loop_held_up(&looked, 500));
	assert_false(loop_held_up(&looked, 500));
}

struct walk {
	struct errand errand;
	int runs, woken, freed;
};

static void walk_run(struct errand *errand)
{
	((struct walk *)errand)->runs++;
}

static void walk_again(struct errand *errand)
{
	if (((struct walk *)errand)->runs < 3)
		errand_send(ERRAND_WRITE, errand);
}

static void walk_wake(void *context)
{
	((struct walk *)context)->woken++;
}

static void walk_free(struct errand *errand)
{
	((struct walk *)errand)->freed++;
}

static struct walk walk;
static int large_fd;

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int stop_when_closed(void)
{
	errands_turn();
	if (!is_open(large_fd) && walk.woken)
		loop_stop();
	return 1;
}

static sem_t begun, others_sent;
static unsigned batches, batch_size[2], batch_ends, batch_freed;

static void batch_run(struct errand *batch)
{
	for (; batch; batch = batch->next)
		batch_size[batches]++;
	if (batches++)
		return;
	sem_post(&begun);
	sem_wait(&others_sent);
}

static void batch_done(struct errand *errand)
{
	assert_int_equal(batch_size[batch_ends > 0], batch_ends ? 3 : 1);
	batch_ends++;
	errand_abandon(errand); /* it is freed later */
	assert_int_equal(batch_freed, batch_ends - 1);
}

static void batch_free(struct errand *errand)
{
	(void)errand;
	if (++batch_freed == 4)
		loop_stop();
}

static int wait_on(void)
{
	return -1;
}

/* Errands that wait at a time are run together. */
static void check_batches(void)
{
	struct errand errand[4];

	sem_init(&begun, 0, 0);
	sem_init(&others_sent, 0, 0);
	for (int i = 0; i < 4; i++) {
		errand[i] = (struct errand){.done = batch_done, .free = batch_free};
		errand_send(ERRAND_ARCHIVE, &errand[i]);
		if (!i)
			sem_wait(&begun);
	}
	sem_post(&others_sent);
	loop_run(wait_on);
	assert_int_equal(batches, 2);
}

/* A large file is closed by a thread, and only after the turn of the loop. A caller that waits for
 * an errand is woken once, when it is not sent again; an abandoned one is freed. */
TEST(test_errands)
{
	int small = memfd_create("small", 0);

	assert_int_equal(loop_init(), ERR_OK);
	errands_batch(ERRAND_ARCHIVE, batch_run);
	assert_int_equal(errands_init(), ERR_OK);
	large_fd = memfd_create("large", 0);
	assert_int_equal(fallocate(large_fd, 0, 0, 8 << 20), 0);
	errand_close(small);
	errand_close(large_fd);
	assert_false(is_open(small));
	assert_true(is_open(large_fd));
	walk = (struct walk){{.run = walk_run, .done = walk_again, .free = walk_free}, 0, 0, 0};
	assert_false(errand_await(&walk.errand, walk_wake, &walk));
	errand_send(ERRAND_WRITE, &walk.errand);
	assert_true(errand_await(&walk.errand, walk_wake, &walk));
	loop_run(stop_when_closed);
	assert_int_equal(walk.runs, 3);
	assert_int_equal(walk.woken, 1);
	assert_false(errand_await(&walk.errand, walk_wake, &walk));
	assert_int_equal(walk.freed, 0);
	errand_abandon(&walk.errand);
	assert_int_equal(walk.freed, 1);
	check_batches();
	errands_fini();
	loop_fini();
}
