/* Timing: every filter in turn, several rounds, so that a busy moment of the host does not fall on
 * one filter alone; medians of the device's own clock. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/sort.h"

enum { ROUNDS = 9, CASES = 7, BANDS_TRIED = 2 };

static char matrix5[128], matrix15[1024];

static const struct {
	const char *name, *chain;
} cases[CASES] = {
    {"separable 3x3", "gaussian=size=3"},
    {"separable 9x9", "gaussian=size=9"},
    {"separable 61x61", "gaussian=size=61"},
    {"sobel", "sobel"},
    {"matrix 3x3", "convolve=kernel=1 2 3;4 5 6;7 8 0"},
    {"matrix 5x5", matrix5},
    {"matrix 15x15", matrix15},
};

uint64_t bench_arena_size(void)
{
	return UINT64_C(4) * BENCH_SIDE * BENCH_SIDE;
}

/* "convolve=kernel=…" with a matrix of small whole numbers that is no product of two. */
static void write_matrix(char *text, size_t size, int side)
{
	size_t used = (size_t)snprintf(text, size, "convolve=kernel=");

	for (int i = 0; i < side * side; i++)
		used += (size_t)snprintf(text + used, size - used, "%d%s", 1 + i * i % 7,
		                         i == side * side - 1   ? ""
		                         : i % side == side - 1 ? ";"
		                                                : " ");
}

static struct plan *make_plan(struct harness *h, const char *text, uint32_t bands)
{
	static struct chain chain;
	struct image image = {.width = BENCH_SIDE, .height = BENCH_SIDE, .bands = bands};
	struct problem problem;
	struct plan *plan = NULL;

	chain_init(&chain);
	if (chain_parse(&chain, text, &problem) ||
	    plan_new(h->programs, &chain, &image, NULL, NULL, &plan) ||
	    !harness_await(h, plan, TILE_PIXELS))
		abort();
	return plan;
}

/* Runs one tile that is the whole image. */
static double run_once(struct harness *h, const struct plan *plan)
{
	struct tiling tiling;
	struct tile tile;
	struct problem problem;
	struct message_tile_done done;
	uint64_t ns = 0;

	if (tiling_init(&tiling, &plan->chain, &plan->image, h->memory.in_size * SLOTS_MIN,
	                h->memory.out_size * SLOTS_MIN, UINT64_MAX, &problem))
		abort();
	tiling.rows = BENCH_SIDE;
	tiling_tile(&tiling, 0, 0, 0, &tile);
	if (harness_run_tile(h, h->lane[LANE_ZERO_COPY], plan, &tile, &done))
		abort();
	for (uint32_t i = 0; i < done.launches; i++)
		ns += done.launch[i].ns;
	return (double)ns * 1e-6;
}

void bench_run(struct harness *h)
{
	static double ms[BANDS_TRIED][CASES][ROUNDS + 1];
	const uint32_t bands[BANDS_TRIED] = {1, 3};
	unsigned char *input = h->memory.in;

	for (uint64_t i = 0; i < h->memory.in_size; i++)
		input[i] = (unsigned char)(i * 2654435761u >> 13);
	write_matrix(matrix5, sizeof matrix5, 5);
	write_matrix(matrix15, sizeof matrix15, 15);
	for (int round = 0; round <= ROUNDS; round++) /* the first warms up */
		for (int b = 0; b < BANDS_TRIED; b++)
			for (int i = 0; i < CASES; i++) {
				struct plan *plan = make_plan(h, cases[i].chain, bands[b]);

				ms[b][i][round] = run_once(h, plan);
				plan_free(&plan);
			}
	printf("%d x %d u8, ms     1 band    3 bands\n", BENCH_SIDE, BENCH_SIDE);
	for (int i = 0; i < CASES; i++) {
		printf("%-20s", cases[i].name);
		for (int b = 0; b < BANDS_TRIED; b++) {
			sort_doubles(ms[b][i] + 1, ROUNDS);
			printf(" %9.2f", ms[b][i][1 + ROUNDS / 2]);
		}
		printf("\n");
	}
}
