/* Test tiles, which a device must filter correctly to be trusted. Their pixels are our own, so no
 * client can construct one that a healthy device gets wrong. */
#pragma once

#include <stdint.h>

#include "front/jobs/plans.h"
#include "front/workers/supervisor.h"
#include "wire/wire.h"

/* The test tiles, in an arena of their own, and their expected results: one tile goes through
 * filters of every kind; each filter of a doubted plan has one, by that plan's kernels and type. */
struct self_test;

enum { SELF_TEST_ARENA = 1000 };

/* The job number of test tiles, which no client's job has. */
#define SELF_TEST_JOB UINT64_MAX

/* Makes test tiles. plan: the doubted plan, which is not kept, or NULL. kernels: those that
 * filtered by it. Returns NULL and logs an error if memory or descriptors run out. */
struct self_test *self_test_new(const struct plan *plan, const struct kernel_set *kernels);
void self_test_free(struct self_test **self_test);

/* Sends the tiles to a device's worker that is up and has none of them; to its next one again. */
void self_test_send(struct self_test *self_test, struct worker *worker);
/* Withdraws the tiles' arena and plans from the worker, once all tiles are back. */
void self_test_withdraw(const struct self_test *self_test, struct worker *worker);

enum self_test_result { SELF_TEST_OPEN, SELF_TEST_RIGHT, SELF_TEST_WRONG };

/* Checks a tile that came back, and logs what is wrong with it; SELF_TEST_OPEN while more are to
 * come. A filter that the device cannot run is not wrong. */
enum self_test_result self_test_take(struct self_test *self_test,
                                     const struct message_tile_done *done);
