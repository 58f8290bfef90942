/* Test tiles: what a device must filter rightly to be trusted. Their pixels are of our own choice,
 * so that nobody outside can make one that a healthy device gets wrong. */
#ifndef FRONT_WORKERS_SELF_TEST_H
#define FRONT_WORKERS_SELF_TEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire.h"
#include "front/jobs/plans.h"
#include "front/workers/supervisor.h"

/* The tiles in an arena of their own, numbered SELF_TEST_ARENA, and what must come of them: one
 * through filters of every kind, and, if a plan is in doubt, one through each of its filters alone,
 * by the same kernels on its kind of pixels. */
struct self_test;

enum { SELF_TEST_ARENA = 1000 };

/* The job of test tiles, which no client's has. */
#define SELF_TEST_JOB UINT64_MAX

/* plan: NULL if none is in doubt; it is only looked at. kernels: a bit for each that filtered by
 * it. NULL without memory or descriptors. */
struct self_test *self_test_new(const struct plan *plan, uint64_t kernels);
void self_test_free(struct self_test **self_test);

/* Gives the tiles to a device that is up and has none of them. False if the device failed on that.
 * It can be given again to the device's next worker. */
bool self_test_send(struct self_test *self_test, struct worker *worker);
/* Has the worker forget the tiles' arena and plans, once all are back. */
void self_test_withdraw(const struct self_test *self_test, struct worker *worker);
/* The worker is gone, and the tiles with it. */
void self_test_lost(struct self_test *self_test);

/* loop_now() when the tiles were sent; 0 if none is out. */
uint64_t self_test_sent(const struct self_test *self_test);
/* A tile waits for a program, for so many milliseconds at most; the most that any of them does. */
void self_test_waits(struct self_test *self_test, uint32_t ms);
uint32_t self_test_wait(const struct self_test *self_test);

enum self_test_result { SELF_TEST_OPEN, SELF_TEST_RIGHT, SELF_TEST_WRONG };

/* What a tile that came back says of the device, SELF_TEST_OPEN while more are to come; logs what
 * is wrong. What the device cannot do at all (a variant that does not apply) is not. */
enum self_test_result self_test_take(struct self_test *self_test,
                                     const struct message_tile_done *done);

#endif
