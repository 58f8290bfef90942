/* The test's codec: pads by border_map(), one tile at a time, at the same place of the arena. */
#include "harness.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "border.h"

/* Poison for input is NaN where pixels are floats. */
enum { GUARD = 4096, POISON_IN = 0xFF, POISON_OUT = 0xA5 };

static bool open_arena(struct harness *h, uint64_t size)
{
	int in, out;
	bool ok;

	if (arena_create("in", size, &in) || arena_create("out", size, &out))
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
	h->notify_fd = eventfd(0, EFD_NONBLOCK);
	if (h->notify_fd >= 0 && !device_open(&h->device, platform, index) &&
	    (h->device.in_test = true) &&
	    !programs_new(&h->programs, &h->device, kernel_dir, getenv("CONVOLVED_CACHE"), -1) &&
	    !lane_new(&h->device, h->device.unified, h->notify_fd, &h->lane[LANE_ZERO_COPY]) &&
	    !lane_new(&h->device, false, h->notify_fd, &h->lane[LANE_COPY]) &&
	    open_arena(h, arena_size))
		return true;
	fprintf(stderr, "cannot set up the device\n");
	return false;
}

void harness_fini(struct harness *h)
{
	lane_free(&h->lane[LANE_ZERO_COPY]);
	lane_free(&h->lane[LANE_COPY]);
	device_arena_close(&h->arena);
	arena_unmap(&h->memory);
	programs_free(&h->programs);
	device_close(&h->device);
	close(h->notify_fd);
}

enum error harness_run_tile(struct harness *h, struct lane *lane, const struct plan *plan,
                            const struct tile *tile, struct message_tile_done *done)
{
	struct pollfd wait = {.fd = h->notify_fd, .events = POLLIN};
	uint64_t count;

	*done = (struct message_tile_done){.error = ERR_DEVICE};
	done->cl_error = lane_start(lane, plan, tile, &h->arena);
	if (done->cl_error)
		return ERR_DEVICE;
	while (!lane_finished(lane))
		poll(&wait, 1, -1);
	while (read(h->notify_fd, &count, sizeof count) > 0)
		;
	lane_finish(lane, done);
	return done->error;
}

static size_t align_row(size_t bytes)
{
	return (bytes + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
}

/* A tile of rows [y0, y0 + height) of the result, behind a guard in both arenas. */
static struct tile make_tile(const struct plan *plan, uint32_t first, uint32_t height)
{
	bool crop = plan->chain.border == BORDER_CROP;
	size_t pixel = image_pixel_size(&plan->image), halo = plan->halo_x * pixel;
	uint32_t width = plan->image.width - (crop ? 2 * plan->halo_x : 0);
	struct tile tile = {
	    .index = first,
	    .x0 = crop ? plan->halo_x : 0,
	    .y0 = first + (crop ? plan->halo_y : 0),
	    .width = width,
	    .height = height,
	    .in_pitch = (uint32_t)(align_row(align_row(halo) + width * pixel + halo)),
	    .out_pitch = (uint32_t)align_row(width * pixel),
	    .out = GUARD,
	};

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
			copy_sample(to + b * sample, plan->border_pixel[b], plan->image.type);
		return;
	}
	x = border_map(x, width, (int)plan->chain.border);
	y = border_map(y, height, (int)plan->chain.border);
	memcpy(to, image + ((size_t)y * plan->image.width + (size_t)x) * pixel, pixel);
}

static void fill_input(struct harness *h, const struct plan *plan, const struct tile *tile,
                       const char *image)
{
	size_t pixel = image_pixel_size(&plan->image);
	char *arena = h->memory.in;
	int rx = (int)plan->halo_x, ry = (int)plan->halo_y;
	size_t size = (size_t)tile->in_pitch * (tile->height + 2 * plan->halo_y) + 2 * GUARD;

	memset(arena, POISON_IN, size);
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

/* Checks the bytes around the result; those between its rows only where kernels write it directly.
 */
static bool guards_intact(const struct harness *h, const struct tile *tile, size_t row, bool direct)
{
	const char *first = (const char *)h->memory.out + tile->out;
	const char *end = first + (size_t)(tile->height - 1) * tile->out_pitch + row;
	bool intact = all_poison(first - GUARD, GUARD) && all_poison(end, GUARD);

	for (uint32_t y = 0; direct && intact && y + 1 < tile->height; y++)
		intact =
		    all_poison(first + (size_t)y * tile->out_pitch + row, tile->out_pitch - row);
	return intact;
}

static void filter_tile(struct harness *h, enum lane_mode mode, const struct plan *plan,
                        const struct tile *tile, const void *in, char *out, struct outcome *outcome)
{
	struct message_tile_done done;
	size_t row = tile->width * image_pixel_size(&plan->image);
	char *arena = h->memory.out;
	bool direct = mode == LANE_ZERO_COPY && h->device.unified;

	fill_input(h, plan, tile, in);
	memset(arena, POISON_OUT, (size_t)tile->out_pitch * tile->height + 2 * GUARD);
	if (!tile_valid(tile, &plan->image, &plan->chain, h->memory.in_size, h->memory.out_size))
		outcome->error = ERR_DOES_NOT_FIT;
	else
		outcome->error = harness_run_tile(h, h->lane[mode], plan, tile, &done);
	if (outcome->error) {
		outcome->code = done.cl_error;
		return;
	}
	outcome->guard_broken |= !guards_intact(h, tile, row, direct);
	for (uint32_t i = 0; i < done.launches; i++)
		outcome->launch_ns += done.launch[i].ns;
	for (uint32_t y = 0; y < tile->height; y++)
		memcpy(out + y * row, arena + tile->out + (size_t)y * tile->out_pitch, row);
}

struct outcome harness_filter(struct harness *h, enum lane_mode mode, const struct plan *plan,
                              const void *in, uint32_t tile_rows, void *out)
{
	struct outcome outcome = {0};
	struct problem problem;
	uint32_t width, height;

	outcome.error = chain_output_size(&plan->chain, &plan->image, &width, &height, &problem);
	for (uint32_t y = 0; !outcome.error && y < height; y += tile_rows) {
		uint32_t rows = height - y < tile_rows ? height - y : tile_rows;
		struct tile tile = make_tile(plan, y, rows);

		filter_tile(h, mode, plan, &tile, in,
		            (char *)out + (size_t)y * width * image_pixel_size(&plan->image),
		            &outcome);
	}
	return outcome;
}
