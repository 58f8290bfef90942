/* The pool: tiles of many sizes and filters in flight on many lanes at once, as one launch each or
 * cut as finely as can be, must give the bytes that each gives alone, write nothing beside their
 * result, and be told of. All samples are random, so a tile's place in its image does not matter.
 *
 * test_pool [SEED]. Last it prints "N passed, N failed". */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum {
	LANES = 9,
	ROUNDS = 60,
	SIDE = 512, /* side of the filtered images */
	ROOM = 8 << 20,
	POISON = 0xA5,
	WAIT_MS = 120000
};

/* Kernels that are cut and some that are not, with scratch and without, of all types. */
static const struct {
	const char *filters;
	enum kernel kernel; /* named, or KERNELS */
	uint32_t bands;
	enum pixel_type type;
	bool alpha;
} cases[] = {
    {"gaussian=sigma=1.1", KERNELS, 3, PIXEL_U8, false},
    {"gaussian=sigma=1.1", KERNELS, 4, PIXEL_U8, true},
    {"gaussian=sigma=9", KERNELS, 1, PIXEL_F32, false},
    {"median=radius=2|sobel|unsharp", KERNELS, 3, PIXEL_U8, false},
    {"morphgradient=size=5", KERNELS, 3, PIXEL_U16, false},
    {"convolve=kernel=1 2 3;4 5 6;7 8 0", KERNEL_CONV_LOCAL_SINGLE, 4, PIXEL_U8, false},
    {"bilateral=radius=2", KERNELS, 3, PIXEL_U8, false},
    {"levels=black=0.1", KERNELS, 3, PIXEL_U8, false},
};
enum { CASES = sizeof cases / sizeof *cases };

static struct harness h;
static struct plan *plans[CASES];
static struct lane *lanes[LANES];
static unsigned passed, failed;

static uint32_t below(uint32_t limit)
{
	return (uint32_t)rand() % limit;
}

static struct plan *make_plan(size_t i)
{
	static struct chain chain;
	const struct image image = {.width = SIDE,
	                            .height = SIDE,
	                            .bands = cases[i].bands,
	                            .type = cases[i].type,
	                            .alpha = cases[i].alpha};
	char text[100], *rest = text;
	struct problem problem;
	struct plan *plan;

	chain_init(&chain);
	snprintf(text, sizeof text, "%s", cases[i].filters);
	while (rest)
		if (chain_parse(&chain, strsep(&rest, "|"), &problem)) {
			fprintf(stderr, "%s: %s\n", cases[i].filters, problem.detail);
			exit(1);
		}
	if (cases[i].kernel < KERNELS)
		chain.variant = cases[i].kernel + 1;
	if (plan_new(h.programs, &chain, &image, NULL, NULL, &plan) ||
	    !harness_await(&h, plan, TILE_PIXELS)) {
		fprintf(stderr, "%s: there is no plan\n", cases[i].filters);
		exit(1);
	}
	return plan;
}

/* Returns a tile in the room of lane i. */
static struct tile make_tile(const struct plan *plan, uint32_t i)
{
	const size_t pixel = image_pixel_size(&plan->image), halo = plan->halo_x * pixel;
	const uint32_t height = 1 + below(below(2) ? SIDE : 16);
	struct tile tile = {.index = i,
	                    .width = SIDE,
	                    .height = height,
	                    .y0 = below(SIDE - height + 1),
	                    .in_pitch =
	                        (uint32_t)row_pitch(2 * (halo + ROW_ALIGNMENT) + SIDE * pixel),
	                    .out_pitch = (uint32_t)row_pitch(SIDE * pixel),
	                    .in = (uint64_t)i * ROOM,
	                    .out = (uint64_t)i * ROOM + ROW_ALIGNMENT};

	tile.in += row_pitch(halo) + (uint64_t)plan->halo_y * tile.in_pitch;
	return tile;
}

static cl_int start(struct lane *lane, const struct plan *plan, const struct tile *tile)
{
	const struct lane_tile t = {*tile, &h.arena, NULL};

	return lane_start(lane, plan, &t, 1);
}

/* Runs a tile alone, on the lane that copies, and takes its result from where the pool's is not. */
static bool is_as_alone(const struct plan *plan, const struct tile *tile)
{
	struct message_tile_done done[STACK_MAX];
	struct tile alone = *tile;
	const size_t row = tile->width * image_pixel_size(&plan->image);
	const char *out = (const char *)h.memory.out;
	bool same = true;

	alone.out = (uint64_t)LANES * ROOM + ROW_ALIGNMENT;
	if (start(h.lane[LANE_COPY], plan, &alone))
		return false;
	lane_wait(h.lane[LANE_COPY]);
	while (!lane_finished(h.lane[LANE_COPY]))
		;
	lane_finish(h.lane[LANE_COPY], done);
	for (uint32_t y = 0; same && y < tile->height; y++)
		same = !memcmp(out + tile->out + (size_t)y * tile->out_pitch,
		               out + alone.out + (size_t)y * tile->out_pitch, row);
	return same && !done->error;
}

/* Tells whether the bytes of a lane's room before a tile's result, between its rows and after it
 * are as they were. */
static bool is_clean(const struct plan *plan, const struct tile *tile)
{
	const unsigned char *out = (const unsigned char *)h.memory.out;
	const size_t row = tile->width * image_pixel_size(&plan->image);
	const size_t end = (size_t)(tile->index + 1) * ROOM;

	for (size_t i = (size_t)tile->index * ROOM; i < end; i++) {
		const size_t at = i - tile->out;

		if (i >= tile->out && at / tile->out_pitch < tile->height &&
		    at % tile->out_pitch < row)
			continue;
		if (out[i] != POISON)
			return false;
	}
	return true;
}

/* Waits until the pool has told of something. */
static bool await_notice(void)
{
	struct pollfd event = {.fd = h.notice, .events = POLLIN};
	uint64_t count;

	return poll(&event, 1, WAIT_MS) == 1 &&
	       read(h.notice, &count, sizeof count) == sizeof count;
}

static void judge(const struct plan *plan, const struct tile *tile,
                  const struct message_tile_done *done, size_t i)
{
	const bool whole = !done->error && done->launches && done->job == tile->job;

	if (whole && is_clean(plan, tile) && is_as_alone(plan, tile)) {
		passed++;
		return;
	}
	failed++;
	printf("%s: %u rows from %u: error %d, %u launches\n", cases[i].filters, tile->height,
	       tile->y0, done->error, done->launches);
}

/* Starts a tile on every lane, all at once, and judges them when all have finished. */
static void run_round(uint64_t round)
{
	struct message_tile_done done[LANES][STACK_MAX];
	struct tile tiles[LANES];
	size_t which[LANES];
	uint32_t left = LANES;

	memset(h.memory.out, POISON, (size_t)LANES * ROOM);
	for (uint32_t i = 0; i < LANES; i++) {
		which[i] = below(CASES);
		tiles[i] = make_tile(plans[which[i]], i);
		tiles[i].job = round + 1;
	}
	for (uint32_t i = 0; i < LANES; i++)
		if (start(lanes[i], plans[which[i]], &tiles[i]))
			exit(1);
	while (left && await_notice())
		for (uint32_t i = 0; i < LANES; i++)
			if (lane_finished(lanes[i])) {
				lane_finish(lanes[i], done[i]);
				left--;
			}
	if (left) {
		printf("%u tiles have not finished\n", left);
		exit(1);
	}
	for (uint32_t i = 0; i < LANES; i++)
		judge(plans[which[i]], &tiles[i], done[i], which[i]);
}

int main(int argc, char **argv)
{
	const unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	uint32_t threads;

	srand(seed);
	if (!harness_init(&h, 0, 0, (uint64_t)(LANES + 1) * ROOM, NULL) || !h.pool)
		return 1;
	for (uint64_t i = 0; i < (uint64_t)(LANES + 1) * ROOM; i++)
		((unsigned char *)h.memory.in)[i] = (unsigned char)(rand() >> 7 & 0x3F);
	threads = pool_threads(h.pool);
	for (size_t i = 0; i < CASES; i++)
		plans[i] = make_plan(i);
	for (int i = 0; i < LANES; i++)
		if (lane_new(&h.device, h.pool, &lanes[i]))
			return 1;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		h.device.in_test = round % 2;
		run_round(round);
	}
	for (int i = 0; i < LANES; i++)
		lane_free(&lanes[i]);
	for (size_t i = 0; i < CASES; i++)
		plan_free(&plans[i]);
	harness_fini(&h);
	printf("seed %u, %u threads\n%u passed, %u failed\n", seed, threads, passed, failed);
	return failed || !passed;
}
