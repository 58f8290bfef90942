/* The pool: tiles of many sizes and filters in flight on many lanes at once, as one launch each or
 * cut as finely as can be, must give the bytes that each gives alone, write nothing beside their
 * result, and be told of. All samples are random, so a tile's place in its image does not matter.
 * The options are those of harness.c. */
#include <string.h>
#include <sys/param.h>

#include "device/pool.h"
#include "harness.h"

enum {
	LANES = 9,
	ROUNDS = 60,
	SIDE = 512, /* side of the filtered images */
	ROOM = 8 << 20,
	POISON = 0xA5,
	FORMS = 160 /* PoCL keeps 128 */
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
    {"median=radius=2,sobel,unsharp", KERNELS, 3, PIXEL_U8, false},
    {"morphgradient=size=5", KERNELS, 3, PIXEL_U16, false},
    {"convolve=kernel=1 2 3;4 5 6;7 8 0", KERNEL_CONV_LOCAL_SINGLE, 4, PIXEL_U8, false},
    {"bilateral=radius=2", KERNELS, 3, PIXEL_U8, false},
    {"levels=black=0.1", KERNELS, 3, PIXEL_U8, false},
};
enum { CASES = sizeof cases / sizeof *cases };

static struct harness h;
static struct plan *plans[CASES];
static struct lane *lanes[LANES];

static struct plan *make_plan(size_t i)
{
	static struct chain chain;
	const struct image image = {.width = SIDE,
	                            .height = SIDE,
	                            .bands = cases[i].bands,
	                            .type = cases[i].type,
	                            .alpha = cases[i].alpha};

	harness_parse(&chain, cases[i].filters);
	if (cases[i].kernel < KERNELS)
		chain.variant = cases[i].kernel + 1;
	return harness_plan(&h, &chain, &image, TILE_PIXELS);
}

/* Returns a tile in the room of lane i. */
static struct tile make_tile(const struct plan *plan, uint32_t i)
{
	const size_t pixel = image_pixel_size(&plan->image), halo = plan->halo_x * pixel;
	const uint32_t height = 1 + random_below(random_below(2) ? SIDE : 16);
	struct tile tile = {.index = i,
	                    .width = SIDE,
	                    .height = height,
	                    .y0 = random_below(SIDE - height + 1),
	                    .in_pitch =
	                        (uint32_t)row_pitch(2 * (halo + ROW_ALIGNMENT) + SIDE * pixel),
	                    .out_pitch = (uint32_t)row_pitch(SIDE * pixel),
	                    .in = (uint64_t)i * ROOM,
	                    .out = (uint64_t)i * ROOM + ROW_ALIGNMENT};

	tile.in += row_pitch(halo) + (uint64_t)plan->halo_y * tile.in_pitch;
	return tile;
}

/* Runs a tile alone, on the lane that copies, and takes its result from where the pool's is not. */
static bool is_as_alone(const struct plan *plan, const struct tile *tile)
{
	struct message_tile_done done[STACK_MAX];
	struct tile alone = *tile;
	const size_t row = tile->width * image_pixel_size(&plan->image);
	const char *out = (const char *)h.memory.out;
	bool same;

	alone.out = (uint64_t)LANES * ROOM + ROW_ALIGNMENT;
	same = !harness_run(&h, h.lane[LANE_COPY], plan, &alone, 1, done);
	for (uint32_t y = 0; same && y < tile->height; y++)
		same = !memcmp(out + tile->out + (size_t)y * tile->out_pitch,
		               out + alone.out + (size_t)y * tile->out_pitch, row);
	return same;
}

/* Tells whether the bytes of a lane's room beside a tile's result are as they were. */
static bool is_clean(const struct plan *plan, const struct tile *tile)
{
	const char *room = (const char *)h.memory.out + (size_t)tile->index * ROOM;
	const struct rows rows = {(const char *)h.memory.out + tile->out,
	                          tile->width * image_pixel_size(&plan->image), tile->out_pitch,
	                          tile->height};

	return poison_around(&rows, room, room + ROOM, POISON);
}

static void judge(const struct plan *plan, const struct tile *tile,
                  const struct message_tile_done *done, size_t i)
{
	const bool whole = !done->error && done->launches && done->job == tile->job;

	if (!whole || !is_clean(plan, tile) || !is_as_alone(plan, tile))
		fail("%s: %u rows from %u: error %d, %u launches", cases[i].filters, tile->height,
		     tile->y0, done->error, done->launches);
}

/* Runs the last case's kernel in more shapes of groups than PoCL keeps forms, so that no other
 * kernel has one left. */
static void take_all_forms(void)
{
	const struct plan *plan = plans[CASES - 1];
	const struct tile tile = make_tile(plan, 0);
	struct view views[PLACES] = {
	    [PLACE_IN] = {.buffer = h.arena.in, .origin = tile.in, .pitch = tile.in_pitch},
	    [PLACE_OUT] = {.buffer = h.arena.out, .origin = tile.out, .pitch = tile.out_pitch}};
	struct step step = plan->list.step[0];
	uint64_t ns;

	for (uint32_t shape = 0; shape < FORMS; shape++) {
		step.shape.group_x = (uint16_t)(1 + shape % 16);
		step.shape.group_y = (uint16_t)(1 + shape / 16);
		must(pool_run(h.pool, &step, &tile, views, &ns));
	}
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
		which[i] = random_below(CASES);
		tiles[i] = make_tile(plans[which[i]], i);
		tiles[i].job = round + 1;
	}
	for (uint32_t i = 0; i < LANES; i++) {
		const struct lane_tile t = {tiles[i], &h.arena, NULL};

		must(lane_start(lanes[i], plans[which[i]], &t, 1));
	}
	while (left && harness_await_notice(&h))
		for (uint32_t i = 0; i < LANES; i++)
			if (lane_finished(lanes[i])) {
				lane_finish(lanes[i], done[i]);
				left--;
			}
	if (left)
		die("tiles have not finished");
	for (uint32_t i = 0; i < LANES; i++)
		judge(plans[which[i]], &tiles[i], done[i], which[i]);
}

int main(int argc, char **argv)
{
	int status;

	options_parse(argc, argv);
	harness_init(&h, (uint64_t)(LANES + 1) * ROOM);
	if (!h.pool)
		die("the device does not work in place");
	for (uint64_t i = 0; i < (uint64_t)(LANES + 1) * ROOM; i++)
		((unsigned char *)h.memory.in)[i] = (unsigned char)random_below(64);
	for (size_t i = 0; i < CASES; i++)
		plans[i] = make_plan(i);
	for (int i = 0; i < LANES; i++)
		if (lane_new(&h.device, h.pool, &lanes[i]))
			die("no lane");
	for (uint64_t round = 0; round < howmany(ROUNDS, (uint64_t)options.every); round++) {
		h.device.in_test = round % 2;
		if (round % 2)
			take_all_forms();
		run_round(round);
		test_end("%d tiles by %u threads", LANES, pool_threads(h.pool));
	}
	status = tests_end();
	for (int i = 0; i < LANES; i++)
		lane_free(&lanes[i]);
	for (size_t i = 0; i < CASES; i++)
		plan_free(&plans[i]);
	harness_fini(&h);
	return status;
}
