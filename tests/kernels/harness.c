/* The test's codec: pads by border_map(); tiles one at a time at the arena's start, or as a stack.
 */
#include "harness.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memfd.h"
#include "border.h"
#include "device/cl/environment.h"

/* Poison for input is NaN where pixels are floats. */
enum { GUARD = 4096, POISON_IN = 0xFF, POISON_OUT = 0xA5 };

enum { NOTICE_MS = 60000 };

static bool open_arena(struct harness *h, uint64_t size)
{
	int in, out;
	bool ok;

	if (memfd_fixed("in", size, &in) || memfd_fixed("out", size, &out))
		return false;
	ok = !arena_map(&h->memory, in, size, PROT_READ | PROT_WRITE, out, size,
	                PROT_READ | PROT_WRITE) &&
	     !device_arena_open(&h->arena, &h->device, in, size, out, size);
	close(in);
	close(out);
	return ok;
}

bool harness_init(struct harness *h, unsigned platform, unsigned index, uint64_t arena_size,
                  const char *kernel_dir)
{
	*h = (struct harness){0};
	environment_set(NULL);
	if (!device_open(&h->device, platform, index) && (h->device.in_test = true) &&
	    !programs_new(&h->programs, &h->device, kernel_dir, getenv("CONVOLVED_CACHE"), 0, -1) &&
	    (h->notice = eventfd(0, EFD_CLOEXEC)) >= 0 &&
	    (!h->device.in_place || !pool_new(&h->device, h->notice, &h->pool)) &&
	    !lane_new(&h->device, h->pool, &h->lane[LANE_ZERO_COPY]) &&
	    !lane_new(&h->device, NULL, &h->lane[LANE_COPY]) && open_arena(h, arena_size)) {
		programs_hurry(h->programs);
		return true;
	}
	fprintf(stderr, "cannot set up the device\n");
	return false;
}

void harness_fini(struct harness *h)
{
	lane_free(&h->lane[LANE_ZERO_COPY]);
	lane_free(&h->lane[LANE_COPY]);
	pool_free(&h->pool);
	close(h->notice);
	device_arena_close(&h->arena);
	arena_unmap(&h->memory);
	programs_free(&h->programs);
	device_close(&h->device);
}

bool harness_await(struct harness *h, struct plan *plan, enum tile_form form)
{
	enum program_state state;

	while ((state = plan_resolve(plan, h->programs, form)) == PROGRAM_PENDING)
		programs_wait(h->programs);
	return state == PROGRAM_READY;
}

/* Waits for the word that a lane has finished, if it will give it. False: it does not. */
static bool await_notice(const struct harness *h, const struct lane *lane)
{
	struct pollfd event = {.fd = h->notice, .events = POLLIN};
	uint64_t count;

	return !lane_notifies(lane) || (poll(&event, 1, NOTICE_MS) == 1 &&
	                                read(h->notice, &count, sizeof count) == sizeof count);
}

/* Runs tiles that are already in the arena, as a stack if there are several. */
static enum error run_tiles(struct harness *h, struct lane *lane, const struct plan *plan,
                            const struct tile *tile, uint32_t count,
                            struct message_tile_done done[STACK_MAX])
{
	struct lane_tile tiles[STACK_MAX];
	bool told;

	for (uint32_t i = 0; i < count; i++)
		tiles[i] = (struct lane_tile){tile[i], &h->arena, NULL};
	done[0] = (struct message_tile_done){.error = ERR_DEVICE};
	done->cl_error = lane_start(lane, plan, tiles, count);
	if (done->cl_error)
		return ERR_DEVICE;
	told = await_notice(h, lane);
	lane_wait(lane);
	while (!lane_finished(lane))
		;
	lane_finish(lane, done);
	return done->error || told ? done->error : ERR_INTERNAL;
}

enum error harness_run_tile(struct harness *h, struct lane *lane, const struct plan *plan,
                            const struct tile *tile, struct message_tile_done *done)
{
	struct message_tile_done all[STACK_MAX];
	enum error e = run_tiles(h, lane, plan, tile, 1, all);

	*done = all[0];
	return e;
}

static size_t align_row(size_t bytes)
{
	return (bytes + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
}

/* Makes a tile of rows [y0, y0 + height) of the result, behind a guard in both arenas. */
static struct tile make_tile(const struct plan *plan, uint32_t first, uint32_t height)
{
	size_t pixel = image_pixel_size(&plan->image), halo = plan->halo_x * pixel;
	struct tile tile = {
	    .index = first,
	    .width = plan->width,
	    .height = height,
	    .in_pitch = (uint32_t)align_row(halo + plan->width * pixel + halo),
	    .out_pitch = (uint32_t)align_row(plan->width * pixel),
	    .out = GUARD,
	};

	chain_crops(&plan->chain, &tile.x0, &tile.y0);
	tile.y0 += first;
	tile.in = GUARD + align_row(halo) + (uint64_t)plan->halo_y * tile.in_pitch;
	return tile;
}

static void copy_sample(void *to, double value, enum pixel_type type)
{
	uint8_t u8 = (uint8_t)value;
	uint16_t u16 = (uint16_t)value;
	float f32 = (float)value;
	const void *from = type == PIXEL_U8 ? (void *)&u8 : type == PIXEL_U16 ? (void *)&u16 : &f32;

	memcpy(to, from, pixel_type_size(type));
}

/* The pixel of the image, or of the border, at any place. */
static void pad_pixel(const struct plan *plan, const char *image, int x, int y, char *to)
{
	int width = (int)plan->image.width, height = (int)plan->image.height;
	size_t pixel = image_pixel_size(&plan->image), sample = pixel / plan->image.bands;
	bool inside = x >= 0 && y >= 0 && x < width && y < height;

	if (!inside && plan->chain.border == BORDER_CONSTANT) {
		for (uint32_t b = 0; b < plan->image.bands; b++)
			copy_sample(to + b * sample, (double)plan->border.border.pixel[b],
			            plan->image.type);
		return;
	}
	x = border_map(x, width, (int)plan->chain.border);
	y = border_map(y, height, (int)plan->chain.border);
	memcpy(to, image + ((size_t)y * plan->image.width + (size_t)x) * pixel, pixel);
}

/* Returns bytes of the arenas that a tile takes, with its guards on both sides. */
static uint64_t in_size(const struct plan *plan, const struct tile *tile)
{
	return (uint64_t)tile->in_pitch * (tile->height + 2 * plan->halo_y) + 2 * GUARD;
}

static uint64_t out_size(const struct tile *tile)
{
	return (uint64_t)tile->out_pitch * tile->height + 2 * GUARD;
}

static void poison(struct harness *h, const struct plan *plan, const struct tile *tile)
{
	uint64_t before = GUARD + align_row(plan->halo_x * image_pixel_size(&plan->image)) +
	                  (uint64_t)plan->halo_y * tile->in_pitch;

	memset((char *)h->memory.in + tile->in - before, POISON_IN, in_size(plan, tile));
	memset((char *)h->memory.out + tile->out - GUARD, POISON_OUT, out_size(tile));
}

static void fill_input(struct harness *h, const struct plan *plan, const struct tile *tile,
                       const char *image)
{
	size_t pixel = image_pixel_size(&plan->image);
	char *arena = h->memory.in;
	int rx = (int)plan->halo_x, ry = (int)plan->halo_y;
	uint64_t before =
	    GUARD + align_row(plan->halo_x * pixel) + (uint64_t)plan->halo_y * tile->in_pitch;

	memset(arena + tile->in - before, POISON_IN, in_size(plan, tile));
	for (int y = -ry; y < (int)tile->height + ry; y++)
		for (int x = -rx; x < (int)tile->width + rx; x++)
			pad_pixel(plan, image, (int)tile->x0 + x, (int)tile->y0 + y,
			          arena + (int64_t)tile->in + (int64_t)y * tile->in_pitch +
			              (int64_t)x * (int64_t)pixel);
}

static bool all_poison(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)bytes[i] != POISON_OUT)
			return false;
	return true;
}

/* The results of some stacks lie as close as slots may, with no guard between them. */
static bool close_together(const struct tile *first)
{
	return first->index % 2;
}

/* Checks the bytes ahead of the result and behind; those between its rows only where kernels write
 * it directly. */
static bool guards_intact(const struct harness *h, const struct plan *plan, const struct tile *tile,
                          bool ahead, bool behind, bool direct)
{
	size_t row = tile->width * image_pixel_size(&plan->image);
	const char *first = (const char *)h->memory.out + tile->out;
	const char *end = first + (size_t)(tile->height - 1) * tile->out_pitch + row;
	bool intact =
	    (!ahead || all_poison(first - GUARD, GUARD)) && (!behind || all_poison(end, GUARD));

	for (uint32_t y = 0; direct && intact && y + 1 < tile->height; y++)
		intact =
		    all_poison(first + (size_t)y * tile->out_pitch + row, tile->out_pitch - row);
	return intact;
}

/* Copies a tile's result into the whole result. */
static void take_result(struct harness *h, const struct plan *plan, const struct tile *tile,
                        char *out)
{
	size_t row = tile->width * image_pixel_size(&plan->image);
	const char *from = (const char *)h->memory.out + tile->out;

	for (uint32_t y = 0; y < tile->height; y++)
		memcpy(out + (tile->index + y) * row, from + (size_t)y * tile->out_pitch, row);
}

/* Tells whether some step works on points: columns for tests are too narrow for that. */
static bool on_lattice(const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->list.count; i++)
		if (plan->list.step[i].points.lattice.stride)
			return true;
	return false;
}

/* Filters a tile as columns that lie beside each other in its slot. */
static enum error run_columns(struct harness *h, struct lane *lane, const struct plan *plan,
                              const struct tile *tile, struct message_tile_done *done)
{
	enum { COLUMN = 128 };
	size_t pixel = image_pixel_size(&plan->image);
	enum error e = ERR_OK;

	for (uint32_t x = 0, left = tile->width; !e && left; x += COLUMN) {
		struct tile column = *tile;

		column.x0 += x;
		column.in += x * pixel;
		column.out += x * pixel;
		column.width = left < 2 * COLUMN ? left : COLUMN;
		left -= column.width;
		e = run_tiles(h, lane, plan, &column, 1, done);
	}
	return e;
}

/* Filters these tiles, all of which lie in the arenas, at once. */
static void filter_tiles(struct harness *h, enum lane_mode mode, const struct plan *plan,
                         const struct tile *tiles, uint32_t count, const void *in, char *out,
                         struct outcome *outcome)
{
	struct message_tile_done done[STACK_MAX];
	for (uint32_t i = 0; i < count; i++)
		poison(h, plan, &tiles[i]);
	for (uint32_t i = 0; i < count; i++)
		fill_input(h, plan, &tiles[i], in);
	if (count == 1 && tiles->height % 2 && !on_lattice(plan))
		outcome->error = run_columns(h, h->lane[mode], plan, tiles, done);
	else
		outcome->error = run_tiles(h, h->lane[mode], plan, tiles, count, done);
	if (outcome->error) {
		outcome->code = done->cl_error;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		outcome->guard_broken |=
		    !guards_intact(h, plan, &tiles[i], i == 0 || !close_together(tiles),
		                   i + 1 == count || !close_together(tiles),
		                   mode == LANE_ZERO_COPY && h->device.in_place);
		take_result(h, plan, &tiles[i], out);
	}
	for (uint32_t i = 0; i < done->launches; i++)
		outcome->launch_ns += done->launch[i].ns;
}

/* Puts a tile behind the `count` others, if it may go into one stack with them and there is room:
 * some lie as far from the previous one as that from its predecessor, others do not. */
static bool place_tile(const struct harness *h, enum lane_mode mode, const struct plan *plan,
                       const struct tile *tiles, uint32_t count, struct tile *tile)
{
	const struct tile *before = &tiles[count - 1];

	if (count) {
		uint64_t gap = tile->index % 3 ? 0 : ROW_ALIGNMENT;

		if (mode != LANE_COPY || count == STACK_MAX || !lane_stacks(plan, tiles, tile))
			return false;
		tile->in = before->in + align_row(in_size(plan, before)) + gap;
		tile->out = before->out + align_row(out_size(before)) + gap;
		if (close_together(tiles))
			tile->out = before->out + (uint64_t)before->height * before->out_pitch;
		if (tile->in + in_size(plan, tile) > h->memory.in_size ||
		    tile->out + out_size(tile) > h->memory.out_size)
			return false;
	}
	return tile_valid(tile, &plan->image, &plan->chain, h->memory.in_size, h->memory.out_size);
}

struct outcome harness_filter(struct harness *h, enum lane_mode mode, const struct plan *plan,
                              const void *in, uint32_t tile_rows, void *out)
{
	struct outcome outcome = {0};
	struct problem problem;
	uint32_t width, height, y = 0;

	outcome.error = chain_output_size(&plan->chain, &plan->image, &width, &height, &problem);
	while (!outcome.error && y < height) {
		struct tile tiles[STACK_MAX + 1];
		uint32_t count = 0;

		while (y < height) {
			uint32_t rows = height - y < tile_rows ? height - y : tile_rows;

			tiles[count] = make_tile(plan, y, rows);
			if (!place_tile(h, mode, plan, tiles, count, &tiles[count]))
				break;
			count++;
			y += rows;
		}
		if (count)
			filter_tiles(h, mode, plan, tiles, count, in, out, &outcome);
		else
			outcome.error = ERR_DOES_NOT_FIT;
	}
	return outcome;
}
