/* Times the kernels of the common filters on a large image. */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include "harness.h"

enum { BENCH_SIDE = 4096 };

/* Returns bytes that each arena needs for it. */
uint64_t bench_arena_size(void);

/* Prints one line a filter: the median time of all its launches. */
void bench_run(struct harness *h);

#endif
