/* Warming up: chains that together use every kernel, run on a tile of zeros in an arena of its own.
 */
#include "device/warm.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/log.h"

enum { SIDE = 32, ARENA_SIZE = 1 << 21 };

/* The second matrix is so large that its sums need compensation. The last call of each is on luma.
 */
static const char *const chains[] = {
    "gaussian=size=3,gaussian=sigma=9,sobel,convolve=kernel=1 2 3;4 5 6;7 8 0",
    "convolve=kernel=1e9 2 3;4 5 6;7 8 0:scale=1,bilateral=radius=1,unsharp=sigma=0.3,box",
};

static enum error run_tile(const struct plan *plan, struct lane *lane,
                           const struct device_arena *arena)
{
	struct tiling tiling;
	struct lane_tile tile = {.arena = arena};
	struct problem problem;
	struct message_tile_done done[STACK_MAX];
	cl_int code;

	if (tiling_init(&tiling, &plan->chain, &plan->image, ARENA_SIZE, ARENA_SIZE, 1 << 20,
	                &problem))
		return ERR_INTERNAL;
	tiling_tile(&tiling, 0, 0, 0, &tile.tile);
	code = lane_start(lane, plan, &tile, 1);
	if (code) {
		log_error("cannot launch the kernels: %s", opencl_error_name(code));
		return ERR_DEVICE;
	}
	lane_wait(lane);
	if (!lane_finished(lane))
		return ERR_DEVICE;
	lane_finish(lane, done);
	return done->error;
}

static enum error run_chain(struct programs *programs, struct lane *lane,
                            const struct device_arena *arena, const char *text,
                            const struct image *image)
{
	struct chain *chain = malloc(sizeof *chain);
	struct problem problem;
	struct plan *plan = NULL;
	enum error e = chain ? ERR_OK : ERR_MEMORY;

	if (!e) {
		chain_init(chain);
		e = chain_parse(chain, text, &problem);
	}
	if (!e) {
		chain->call[chain->count - 1].channels = CHANNELS_LUMA;
		e = plan_new(programs, chain, image, plan_choose_general, NULL, &plan);
	}
	if (!e)
		e = run_tile(plan, lane, arena);
	plan_free(&plan);
	free(chain);
	return e;
}

/* All chains for one type, with alpha and without. */
static enum error run_type(struct programs *programs, struct lane *lane,
                           const struct device_arena *arena, enum pixel_type type)
{
	enum error e = ERR_OK;

	for (uint32_t alpha = 0; alpha < 2; alpha++)
		for (size_t i = 0; !e && i < sizeof chains / sizeof *chains; i++) {
			struct image image = {.width = SIDE,
			                      .height = SIDE,
			                      .bands = 4,
			                      .type = type,
			                      .alpha = alpha};

			e = run_chain(programs, lane, arena, chains[i], &image);
		}
	return e;
}

enum error warm_up(struct programs *programs, struct lane *lane)
{
	struct device_arena arena;
	int fd;
	enum error e = arena_create("warm-up", 2 * ARENA_SIZE, &fd);

	if (e)
		return e;
	e = device_arena_open(&arena, programs_device(programs), fd, ARENA_SIZE, fd, ARENA_SIZE);
	close(fd);
	if (e)
		return e;
	for (enum pixel_type type = 0; !e && type < PIXEL_TYPES; type++)
		e = run_type(programs, lane, &arena, type);
	device_arena_close(&arena);
	return e;
}
