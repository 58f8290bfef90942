/* Tiles that are JPEGs, through lanes and through a worker: the bytes are those that libjpeg-turbo
 * makes of the same image, filtered by the same plan as a tile of pixels; or there are flags, and
 * nothing is written. The options are those of harness.c; --brief is for Oclgrind. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <glib.h>

#include "base/memfd.h"
#include "device/worker.h"
#include "harness.h"
#include "jpeg_file.h"

enum {
	GUARD = 4096,
	POISON = 0xA5,
	SLOT = 256 << 10, /* bytes of each image, in both arenas */
	SLOTS = 24,
	MEMORY = 256 << 20,
	TOGETHER = 12, /* tiles for the worker */
};

static struct harness harness;

/* An image, and the encoding of its result. */
struct kind {
	enum jpegs_content content;
	struct jpegs_wish from, to; /* to: sampling and quality */
};

/* The same in a slot of the arenas. */
struct item {
	struct jpeg_file file;
	struct jpegs_wish to;
	struct jpeg_file wanted;
	struct tile tile;
	struct jpeg_work work;
};

/* Makes a plan of general kernels, also for a worker, which would choose others. */
static struct plan *make_plan(const char *filters, enum border border,
                              const struct jpegs_wish *wish)
{
	static struct chain chain;
	const struct image image = {.width = wish->width,
	                            .height = wish->height,
	                            .bands = wish->sampling == JPEGS_GRAY ? 1 : 3,
	                            .type = PIXEL_U8};

	harness_parse(&chain, filters);
	chain.variant = VARIANT_GENERAL;
	chain.border = border;
	if (chain.border == BORDER_CONSTANT) {
		chain.border_values = 1;
		chain.border_value[0] = 200;
	}
	return harness_plan(&harness, &chain, &image, TILE_JPEG);
}

/* Puts an image into slot `number`, whose output is poison. */
static void place(struct item *item, const struct plan *plan, uint32_t number)
{
	const struct geometry *g = &plan->geometry;
	char *in = (char *)harness.memory.in + (uint64_t)number * SLOT;

	item->tile = (struct tile){.form = TILE_JPEG,
	                           .job = number,
	                           .x0 = g->crop[0],
	                           .y0 = g->crop[1],
	                           .width = g->size[0],
	                           .height = g->size[1],
	                           .work = (uint64_t)number * SLOT,
	                           .in = (uint64_t)number * SLOT + JPEG_WORK_SIZE,
	                           .out = (uint64_t)number * SLOT + GUARD,
	                           .in_size = item->file.scan.size,
	                           .out_size = SLOT - 2 * GUARD};
	item->work =
	    (struct jpeg_work){.scan = item->file.scan, .target = jpeg_file_target(&item->to)};
	item->work.scan.offset = 0;
	if (JPEG_WORK_SIZE + item->file.scan.size > SLOT)
		die("a slot is too small");
	memcpy(in, &item->work, sizeof item->work);
	memcpy(in + JPEG_WORK_SIZE, jpeg_file_scan(&item->file), item->file.scan.size);
	memset((char *)harness.memory.out + (uint64_t)number * SLOT, POISON, SLOT);
}

/* Makes a file, and what is expected of it: the filtered picture, encoded. */
static void item_make(struct item *item, const struct plan *plan, const struct kind *kind,
                      uint32_t seed)
{
	struct jpegs_picture before, after = {.bands = plan->image.bands};
	struct problem problem;

	*item = (struct item){.to = kind->to};
	jpeg_file_make(&item->file, kind->from, kind->content, seed);
	if (!jpegs_decode_any(item->file.bytes, item->file.size, &before) ||
	    chain_output_size(&plan->chain, &plan->image, &after.width, &after.height, &problem))
		die("no picture");
	after.samples = g_malloc((size_t)after.width * after.height * after.bands);
	if (harness_filter(&harness, LANE_COPY, plan, before.samples, after.height, after.samples)
	        .error)
		die("a tile of pixels failed");
	free(before.samples);
	jpeg_file_encode(&item->wanted, after, kind->to);
}

static void item_free(struct item *item)
{
	jpeg_file_free(&item->file);
	jpeg_file_free(&item->wanted);
}

/* Compares a slot with the bytes that are expected there, and poison around them. */
static void compare(const struct item *item, const struct message_tile_done *done)
{
	const uint8_t *out = (const uint8_t *)harness.memory.out + item->tile.out;
	const struct jpegs_wish *w = &item->file.wish;
	const uint64_t size = item->wanted.scan.size;
	const char *wrong = done->error                                        ? "an error"
	                    : done->jpeg_flags                                 ? "flags"
	                    : done->size != size                               ? "another size"
	                    : memcmp(out, jpeg_file_scan(&item->wanted), size) ? "other bytes"
	                    : !all_poison(out - GUARD, GUARD, POISON) ||
	                            !all_poison(out + size, SLOT - GUARD - size, POISON)
	                        ? "bytes around the result were written"
	                        : NULL;

	if (wrong)
		fail("%ux%u sampling %d interval %u, to sampling %d: error %u flags %x size %llu "
		     "of %llu: %s",
		     w->width, w->height, (int)w->sampling, w->restart_interval,
		     (int)item->to.sampling, done->error, done->jpeg_flags,
		     (unsigned long long)done->size, (unsigned long long)size, wrong);
}

static void compare_flagged(const struct item *item, const struct message_tile_done *done)
{
	const uint8_t *slot = (const uint8_t *)harness.memory.out + item->tile.out - GUARD;

	if (done->error || !done->jpeg_flags || done->size)
		fail("expected flags");
	if (item->tile.form != TILE_DECODE && !all_poison(slot, SLOT, POISON))
		fail("a flagged image has a result");
}

/* Runs items that lie in slots, in a stack if there are several. */
static void run(struct lane *lane, const struct plan *plan, struct item *items, uint32_t count,
                struct message_tile_done *done)
{
	struct lane_tile tiles[STACK_MAX];
	uint64_t scans;

	if (lane_jpeg_room(lane, plan, &items->tile, &scans) < count)
		die("no room in the lane");
	for (uint32_t i = 0; i < count; i++) {
		const char *slot = (const char *)harness.memory.in + items[i].tile.work;

		if (!tile_valid(&items[i].tile, &plan->image, &plan->chain, harness.memory.in_size,
		                harness.memory.out_size) ||
		    !jpeg_work_take(&items[i].work, slot, &items[i].tile, plan) ||
		    (count > 1 && !lane_stacks(plan, &items->tile, &items[i].tile)))
			die("a tile is refused");
		tiles[i] = (struct lane_tile){items[i].tile, &harness.arena, &items[i].work};
	}
	done->error = ERR_DEVICE;
	if (lane_start(lane, plan, tiles, count)) {
		fail("lane_start failed");
		return;
	}
	while (!lane_finished(lane))
		lane_wait(lane);
	if (lane_finish(lane, done) != count)
		fail("answers are missing");
}

/* Makes the output of an item pixels. */
static void place_result(struct item *item, const struct plan *plan)
{
	item->tile.form = TILE_DECODE;
	item->tile.out_size = 0;
	item->tile.out_pitch = (uint32_t)row_pitch(item->tile.width * plan->image.bands);
}

/* Makes the input of an item pixels, with a halo. */
static void place_source(struct item *item, const struct plan *plan)
{
	struct tile *tile = &item->tile;
	const struct extent columns = geometry_source(&plan->geometry, 0, tile->x0, tile->width),
	                    rows = geometry_source(&plan->geometry, 1, tile->y0, tile->height);
	const int width = (int)columns.count, height = (int)rows.count;
	const int bands = (int)plan->image.bands;
	const int halo_x = (int)plan->halo_x, halo_y = (int)plan->halo_y;
	struct jpegs_picture from;
	char *to;

	if (!jpegs_decode_any(item->file.bytes, item->file.size, &from))
		die("libjpeg");
	tile->form = TILE_ENCODE;
	tile->in_size = 0;
	tile->in_pitch =
	    (uint32_t)row_pitch((columns.count + 2 * plan->halo_x) * (uint64_t)plan->image.bands);
	tile->in +=
	    row_pitch(plan->halo_y * (uint64_t)tile->in_pitch + plan->halo_x * plan->image.bands);
	to = (char *)harness.memory.in + tile->in;
	for (int y = -halo_y; y < height + halo_y; y++)
		for (int x = -halo_x; x < width + halo_x; x++)
			harness_pad(plan, from.samples, columns.first + x, rows.first + y,
			            to + y * (int64_t)tile->in_pitch + x * bands);
	memset(&item->work.scan, 0xFF, sizeof item->work.scan); /* without meaning */
	memcpy((char *)harness.memory.in + tile->work, &item->work, sizeof item->work);
	free(from.samples);
}

/* Compares rows of pixels in a slot, with poison before and after them. */
static void compare_pixels(const struct item *item, const struct message_tile_done *done)
{
	const struct jpegs_picture *expected = &item->wanted.picture;
	const size_t row = (size_t)expected->width * expected->bands, pitch = item->tile.out_pitch;
	const uint8_t *out = (const uint8_t *)harness.memory.out + item->tile.out;
	const uint8_t *end = out + (expected->height - 1) * pitch + row;
	bool equal = true;

	if (done->error || done->jpeg_flags || done->size)
		fail("no pixels");
	for (uint32_t y = 0; y < expected->height; y++)
		equal &= !memcmp(out + y * pitch, expected->samples + y * row, row);
	if (!equal)
		fail("other pixels");
	if (!all_poison(out - GUARD, GUARD, POISON) ||
	    !all_poison(end, (size_t)(out - GUARD + SLOT - end), POISON))
		fail("bytes around the pixels were written");
}

static void check_told(const struct item *item, const struct message_tile_done *done)
{
	if (done->launches < 3 || done->launch[0].kernel != KERNEL_JPEG_DECODE ||
	    done->launch[done->launches - 1].kernel != KERNEL_JPEG_ENCODE ||
	    done->upload_bytes != item->file.scan.size ||
	    done->download_bytes != item->wanted.scan.size)
		fail("launches or copies are not told");
}

/* The places of those in a stack that is large enough: one is damaged, one has too little room. */
enum { DAMAGED = 3, SMALL = 5 };

/* Images as tiles of this form, in a stack if there are several. */
static void try_tiles(enum tile_form form, enum lane_mode mode, const char *filters,
                      enum border border, const struct kind *kinds, uint32_t count)
{
	static uint32_t turn;
	const bool decodes = form != TILE_ENCODE, encodes = form != TILE_DECODE;
	struct plan *plan = make_plan(filters, border, &kinds->from);
	struct message_tile_done done[STACK_MAX];
	struct item items[STACK_MAX];

	if (turn++ % 3 == 0)
		lane_rest(harness.lane[mode]); /* new buffers are poison */
	for (uint32_t i = 0; i < count; i++)
		item_make(&items[i], plan, &kinds[i], turn + i);
	for (uint32_t i = 0; i < count; i++) {
		place(&items[i], plan, (5 * i + turn) % SLOTS);
		if (count > 1)
			items[i].tile.out_size = items[i].wanted.scan.size - (i == SMALL);
		if (!encodes)
			place_result(&items[i], plan);
		if (!decodes)
			place_source(&items[i], plan);
		if (decodes && i == DAMAGED)
			memset((char *)harness.memory.in + items[i].tile.in, 0xFF, 90);
	}
	run(harness.lane[mode], plan, items, count, done);
	if (encodes && count > SMALL && done[SMALL].jpeg_flags != JPEG_FLAG_ROOM)
		fail("expected no room");
	for (uint32_t i = 0; i < count; i++) {
		if (done[i].stack != count || done[i].place != i ||
		    done[i].job != items[i].tile.job)
			fail("an answer is not of this stack");
		if ((decodes && i == DAMAGED) || (encodes && i == SMALL))
			compare_flagged(&items[i], &done[i]);
		else if (encodes)
			compare(&items[i], &done[i]);
		else
			compare_pixels(&items[i], &done[i]);
	}
	if (count == 1 && form == TILE_JPEG)
		check_told(items, done);
	for (uint32_t i = 0; i < count; i++)
		item_free(&items[i]);
	plan_free(&plan);
}

/* Returns a kind of images of one size; everything else differs. */
static struct kind mixed_kind(const struct jpegs_wish *like, uint32_t i)
{
	struct kind kind = {(enum jpegs_content)(i % JPEGS_CONTENTS), *like, *like};

	if (like->sampling != JPEGS_GRAY) {
		kind.from.sampling = (enum jpegs_sampling)(JPEGS_444 + i / 2 % 3);
		kind.to.sampling = (enum jpegs_sampling)(JPEGS_444 + i % 3);
	}
	kind.from.quality = 50 + 4 * i;
	kind.from.restart_interval = i % 2 * 5;
	kind.from.optimize = i % 3 == 0;
	kind.to.quality = 60 + 3 * i;
	return kind;
}

/* Tests ---------------------------------------------------------------------------------------- */

/* Every form, alone and in stacks: by kernels that take a stack as one high tile, by some that know
 * their place in the image, and by some that take one tile after the other. Borders, and images
 * that are smaller than the window. */
static void test_forms(void)
{
	enum { STACK = 7 };
	static const struct {
		const char *filters;
		enum border border;
		struct jpegs_wish like;
		uint32_t stack;
	} rows[] = {
	    {"gaussian=size=3", BORDER_REPLICATE, {18, 20, JPEGS_420, .quality = 80}, 2},
	    {"resize=width=40", BORDER_REPLICATE, {93, 61, JPEGS_420, .quality = 90}, STACK},
	    {"box=size=5,resize=width=61:height=40:fit=fill,sharpen",
	     BORDER_REFLECT101,
	     {93, 61, JPEGS_422, .quality = 90},
	     STACK},
	    {"resize=width=30:height=30:fit=cover:gravity=east,gaussian=size=5",
	     BORDER_CONSTANT,
	     {93, 61, JPEGS_444, .quality = 90},
	     2},
	    {"resize=width=200:enlarge=1", BORDER_WRAP, {93, 61, JPEGS_GRAY, .quality = 90}, 1},
	    {"gaussian=size=5,sobel", BORDER_REFLECT101, {93, 61, JPEGS_420, .quality = 90}, STACK},
	    {"pixelate=size=7,box=size=3&regions=10,5,40,30;ellipse:50,20,33,28;polygon:60,0 90,9 "
	     "70,50",
	     BORDER_REFLECT101,
	     {93, 61, JPEGS_420, .quality = 90},
	     STACK},
	    {"box=size=1", BORDER_REPLICATE, {64, 33, JPEGS_GRAY, .quality = 90}, STACK},
	    {"box=size=9", BORDER_REPLICATE, {1, 40, JPEGS_444, .quality = 90}, STACK},
	    {"gaussian=size=3", BORDER_REPLICATE, {1, 1, JPEGS_GRAY, .quality = 90}, 1},
	    {"sobel", BORDER_REFLECT101, {67, 1, JPEGS_422, .quality = 80}, 1},
	    {"box=size=21", BORDER_WRAP, {5, 3, JPEGS_444, .quality = 80}, 1},
	    {"gaussian=sigma=1,unsharp", BORDER_CONSTANT, {333, 97, JPEGS_422, .quality = 85}, 1},
	    {"gaussian=sigma=30", BORDER_REFLECT, {260, 150, JPEGS_420, .quality = 85}, 3},
	    {"box=size=3,dog,laplacian", BORDER_CROP, {130, 70, JPEGS_420, .quality = 60}, 1},
	    {"convolve=kernel=1 2 1", BORDER_CROP, {9, 8, JPEGS_GRAY, .quality = 60}, 1},
	};
	const size_t count = options.brief ? 1 : sizeof rows / sizeof *rows;
	struct kind kinds[STACK];

	for (size_t r = 0; r < count; r++) {
		for (uint32_t i = 0; i < STACK; i++)
			kinds[i] = mixed_kind(&rows[r].like, i);
		for (enum tile_form form = TILE_DECODE; form <= TILE_JPEG; form++) {
			try_tiles(form, LANE_COPY, rows[r].filters, rows[r].border, kinds,
			          rows[r].stack);
			for (int mode = 0; mode < LANE_MODES && !options.brief; mode++)
				try_tiles(form, (enum lane_mode)mode, rows[r].filters,
				          rows[r].border, &kinds[(r + 1) % STACK], 1);
		}
	}
}

/* A description with any wrong number is refused. */
static void test_works(void)
{
	static const struct jpegs_wish like = {40, 30, JPEGS_420, .quality = 90},
	                               like_gray = {40, 30, JPEGS_GRAY, .quality = 90};
	const struct kind color = mixed_kind(&like, 2), gray = mixed_kind(&like_gray, 2);
	struct plan *plan = make_plan("box=size=3", BORDER_REPLICATE, &like),
	            *gray_plan = make_plan("box=size=3", BORDER_REPLICATE, &like_gray);
	struct item item, gray_item;
	struct jpeg_work work;

	item_make(&item, plan, &color, 1);
	item_make(&gray_item, gray_plan, &gray, 1);
	place(&item, plan, 0);
	place(&gray_item, gray_plan, 1);
	if (!jpeg_work_take(&work, &item.work, &item.tile, plan) ||
	    !jpeg_work_take(&work, &gray_item.work, &gray_item.tile, gray_plan) ||
	    jpeg_work_take(&work, &gray_item.work, &item.tile, plan) ||
	    memcmp(&work, &gray_item.work, sizeof work) != 0)
		fail("valid descriptions are refused, or others taken");
#define REFUSED(member, value)                                                                     \
	do {                                                                                       \
		struct jpeg_work changed = item.work;                                              \
                                                                                                   \
		changed.member = (value);                                                          \
		if (jpeg_work_take(&work, &changed, &item.tile, plan))                             \
			fail(#member " = " #value " is taken");                                    \
	} while (0)
	REFUSED(scan.width, 39);
	REFUSED(scan.width, 0);
	REFUSED(scan.height, 31);
	REFUSED(scan.height, UINT32_MAX);
	REFUSED(scan.components, 1);
	REFUSED(scan.components, 4);
	REFUSED(scan.h, 3);
	REFUSED(scan.h, 0);
	REFUSED(scan.v, 3);
	REFUSED(scan.restart_interval, 65536);
	REFUSED(scan.huffman[1][1].bits[0], 1);
	REFUSED(scan.huffman[0][0].bits[15], 255);
	REFUSED(scan.huffman[0][0].values[0], 16);
	REFUSED(scan.offset, 1);
	REFUSED(scan.size, 0);
	REFUSED(scan.size, item.file.scan.size + 1);
	REFUSED(scan.size, item.file.scan.size - 1);
	REFUSED(scan.size, UINT64_MAX);
	REFUSED(target.h, 0);
	REFUSED(target.h, 4);
	REFUSED(target.v, 0);
	REFUSED(target.v, 3);
	REFUSED(target.quantization[0][0], 0);
	REFUSED(target.quantization[1][63], 256);
#undef REFUSED
	gray_item.work.target.h = 2;
	if (jpeg_work_take(&work, &gray_item.work, &gray_item.tile, gray_plan))
		fail("gray with subsampling is taken");
	item_free(&item);
	item_free(&gray_item);
	plan_free(&plan);
	plan_free(&gray_plan);
}

/* A lane takes the stacks that fit into its memory, and no more; it releases another kind's
 * buffers. */
static void test_memory(void)
{
	static const struct kind wide = {JPEGS_SMOOTH,
	                                 {400, 40, JPEGS_420, .quality = 85},
	                                 {.sampling = JPEGS_420, .quality = 85}},
	                         high = {JPEGS_SMOOTH,
	                                 {40, 400, JPEGS_444, .quality = 85},
	                                 {.sampling = JPEGS_444, .quality = 85}};
	struct lane *lane = harness.lane[LANE_COPY];
	struct plan *plan = make_plan("gaussian=size=3", BORDER_REPLICATE, &wide.from);
	struct plan *high_plan = make_plan("gaussian=size=9,sobel", BORDER_REPLICATE, &high.from);
	struct jpeg_lane held = {.memory = 0};
	struct item item, high_item;
	uint64_t scans;
	uint32_t some, more;

	item_make(&item, plan, &wide, 1);
	place(&item, plan, 0);
	item_make(&high_item, high_plan, &high, 1);
	place(&high_item, high_plan, 1);
	lane_allow_jpeg(lane, harness.programs, 1 << 10);
	if (lane_jpeg_room(lane, plan, &item.tile, &scans))
		fail("an image fits into a kilobyte");
	lane_allow_jpeg(lane, harness.programs, 4 << 20);
	some = lane_jpeg_room(lane, plan, &item.tile, &scans);
	if (!some || scans != (4 << 20) / 12)
		fail("no image fits into 4 MiB");
	lane_allow_jpeg(lane, harness.programs, 8 << 20);
	more = lane_jpeg_room(lane, plan, &item.tile, &scans);
	if (more < 2 * some || more > 2 * some + 1)
		fail("twice the memory does not take twice as many");
	/* Sizes of buffers add up over kinds of stacks. */
	held.memory = 8 << 20;
	if (!jpeg_lane_hold(&held, plan, &item.tile, more) ||
	    !jpeg_lane_hold(&held, plan, &item.tile, 1) ||
	    jpeg_lane_hold(&held, plan, &item.tile, more + 1) ||
	    jpeg_lane_hold(&held, high_plan, &high_item.tile, more))
		fail("a lane holds more than its memory, or less");
	memset(held.held, 0, sizeof held.held);
	if (!jpeg_lane_hold(&held, high_plan, &high_item.tile, 1))
		fail("a lane holds what it has released");
	lane_allow_jpeg(lane, harness.programs, (8 << 20) / (more - 1));
	try_tiles(TILE_JPEG, LANE_COPY, "gaussian=size=3", BORDER_REPLICATE, &wide, 1);
	try_tiles(TILE_JPEG, LANE_COPY, "gaussian=size=3", BORDER_REPLICATE, &high, 1);
	lane_allow_jpeg(lane, NULL, MEMORY);
	if (lane_jpeg_room(lane, plan, &item.tile, &scans))
		fail("a lane without programs takes JPEGs");
	lane_allow_jpeg(lane, harness.programs, MEMORY);
	item_free(&item);
	item_free(&high_item);
	plan_free(&plan);
	plan_free(&high_plan);
}

/* The worker ----------------------------------------------------------------------------------- */

static int sockets[2];
static struct message_objects objects; /* as last told */

static void *serve(void *worker)
{
	if (worker_run(worker))
		fail("the worker ended with an error");
	return NULL;
}

static void send_message(const struct message *message, const int *fds)
{
	if (wire_send(sockets[0], message, fds))
		die("cannot send to the worker");
}

/* Returns the next message of a type; others are passed over. */
static struct message next_message(enum message_type type)
{
	struct pollfd ready = {.fd = sockets[0], .events = POLLIN};
	int fds[MESSAGE_FDS_MAX];
	struct message message;

	do {
		if (poll(&ready, 1, 120000) != 1 ||
		    wire_receive(sockets[0], &message, fds) != WIRE_MESSAGE)
			die("the worker does not answer");
		if (message.type == MSG_OBJECTS)
			objects = message.objects;
	} while (message.type != type);
	return message;
}

static void send_tile(const struct item *item, uint64_t plan)
{
	send_message(&(struct message){.type = MSG_TILE, .tile = {item->tile, plan}}, NULL);
}

/* Gives the worker an arena and a plan; tiles placed from now on lie in that arena. */
static void send_arena(struct arena *memory)
{
	int fds[2];

	harness_map(memory, SLOTS * SLOT, fds);
	send_message(
	    &(struct message){.type = MSG_ARENA,
	                      .arena = {.in_size = SLOTS * SLOT, .out_size = SLOTS * SLOT}},
	    fds);
	close(fds[0]);
	close(fds[1]);
}

static void send_plan(uint64_t number, const struct plan *plan)
{
	int fd;

	if (memfd_sealed("chain", &plan->chain, sizeof plan->chain, &fd))
		die("no memfd");
	send_message(
	    &(struct message){.type = MSG_PLAN, .plan = {.plan = number, .image = plan->image}},
	    &fd);
	close(fd);
}

/* Tiles that arrive together: one has an invalid description, one is damaged, one has too little
 * room, one lies outside the arena. The largest stack. */
static uint32_t try_together(const struct plan *plan, struct item *items)
{
	enum { INVALID = 2, OUTSIDE = 9 };
	uint32_t stack = 0;

	for (uint32_t i = 0; i < TOGETHER; i++) {
		place(&items[i], plan, i);
		items[i].tile.out_size = items[i].wanted.scan.size;
	}
	items[INVALID].work.scan.width++;
	memcpy((char *)harness.memory.in + items[INVALID].tile.work, &items[INVALID].work,
	       sizeof items[INVALID].work);
	memset((char *)harness.memory.in + items[DAMAGED].tile.in, 0xFF, 90);
	items[SMALL].tile.out_size--;
	items[OUTSIDE].tile.in_size = SLOTS * SLOT;
	for (uint32_t i = 0; i < TOGETHER; i++)
		send_tile(&items[i], 1);
	for (uint32_t i = 0; i < TOGETHER; i++) {
		const struct message m = next_message(MSG_TILE_DONE);
		const struct message_tile_done *done = &m.tile_done;
		const uint64_t n = done->job;

		if (n >= TOGETHER)
			die("an answer to no tile");
		stack = done->stack > stack ? done->stack : stack;
		if (n == OUTSIDE && (done->error != ERR_INTERNAL || done->size))
			fail("a tile outside the arena is taken");
		else if (n == INVALID || n == DAMAGED || n == SMALL)
			compare_flagged(&items[n], done);
		else if (n != OUTSIDE)
			compare(&items[n], done);
		if (n == INVALID && done->jpeg_flags != JPEG_FLAG_WORK)
			fail("expected JPEG_FLAG_WORK");
	}
	return stack;
}

struct changer {
	volatile struct jpeg_work *work;
	atomic_bool stop;
};

/* Makes numbers invalid and valid again, as fast as it can. */
static void *change(void *data)
{
	struct changer *c = data;
	const uint32_t width = c->work->scan.width, h = c->work->target.h;
	const uint64_t size = c->work->scan.size;

	while (!atomic_load(&c->stop)) {
		c->work->scan.width = 60000;
		c->work->scan.size = UINT32_MAX;
		c->work->target.h = 77;
		c->work->scan.restart_interval = UINT32_MAX;
		c->work->scan.width = width;
		c->work->scan.size = size;
		c->work->target.h = h;
		c->work->scan.restart_interval = 0;
	}
	return NULL;
}

/* A description that changes while the worker looks at it: taken as it was, or refused. */
static void try_changing(const struct plan *plan, struct item *item)
{
	enum { TIMES = 60 };
	struct changer changer;
	pthread_t thread;

	place(item, plan, 0);
	changer = (struct changer){.work = (void *)harness.memory.in};
	if (pthread_create(&thread, NULL, change, &changer))
		die("no thread");
	for (uint32_t i = 0; i < TIMES; i++) {
		struct message m;

		memset((char *)harness.memory.out, POISON, SLOT);
		send_tile(item, 1);
		m = next_message(MSG_TILE_DONE);
		if (m.tile_done.jpeg_flags)
			compare_flagged(item, &m.tile_done);
		else
			compare(item, &m.tile_done);
	}
	atomic_store(&changer.stop, true);
	pthread_join(thread, NULL);
}

/* An image beyond the share of memory is refused before anything of it is read. */
static void try_large(void)
{
	static const struct jpegs_wish wish = {1300, 1300, JPEGS_420, .quality = 90};
	struct plan *plan = make_plan("box=size=3", BORDER_REPLICATE, &wish);
	static uint8_t unread[100]; /* a scan */
	struct item item = {.file = {.wish = wish, .bytes = unread, .scan = {.size = 100}},
	                    .to = wish};
	struct message m;

	place(&item, plan, 0);
	send_plan(2, plan);
	send_tile(&item, 2);
	m = next_message(MSG_TILE_DONE);
	compare_flagged(&item, &m.tile_done);
	if (m.tile_done.jpeg_flags != JPEG_FLAG_DEVICE)
		fail("expected JPEG_FLAG_DEVICE");
	plan_free(&plan);
}

/* An idle worker releases the buffers: those of one lane at least, as it may have used no other. */
static void wait_for_release(void)
{
	enum { OF_A_LANE = 20 };
	uint32_t most = objects.live[OBJECT_BUFFER];

	while (most < OF_A_LANE || objects.live[OBJECT_BUFFER] > most - OF_A_LANE) {
		next_message(MSG_OBJECTS);
		if (objects.live[OBJECT_BUFFER] > most)
			most = objects.live[OBJECT_BUFFER];
	}
}

/* All of them, on a worker that copies. */
static void try_worker(const struct plan *plan, struct item *items)
{
	enum { ROUNDS = 10, ALL = 32 << 20 };
	struct device device = harness.device;
	struct start start = {.stack = 8, .jpeg_memory = (ALL + 0.5) / (double)device.memory};
	const char *cache = getenv("CONVOLVED_CACHE");
	struct arena harness_memory = harness.memory;
	struct message_ready ready;
	struct worker *worker;
	pthread_t thread;
	uint32_t stack = 0;

	device.in_place = false;
	snprintf(start.cache_dir, sizeof start.cache_dir, "%s", cache ? cache : "");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) ||
	    worker_new(&device, &start, sockets[1], &worker))
		die("no worker");
	worker_describe(worker, &ready);
	if (ready.jpeg_pixels != ALL / ready.lanes / JPEG_PIXEL_BYTES)
		fail("another size than its memory allows");
	if (pthread_create(&thread, NULL, serve, worker))
		die("no thread");
	while (!next_message(MSG_PROGRAMS).programs.jpeg)
		;
	send_arena(&harness.memory);
	send_plan(1, plan);
	for (uint32_t round = 0; round < ROUNDS && stack < 2; round++)
		stack = try_together(plan, items);
	if (stack < 2)
		fail("tiles that wait together do not share a launch");
	try_changing(plan, &items[0]);
	try_large();
	wait_for_release();
	shutdown(sockets[0], SHUT_WR); /* its remaining words must not fail */
	pthread_join(thread, NULL);
	worker_free(&worker);
	close(sockets[0]);
	close(sockets[1]);
	arena_unmap(&harness.memory);
	harness.memory = harness_memory;
}

static void test_worker(void)
{
	static const struct jpegs_wish like = {93, 61, JPEGS_420, .quality = 85};
	struct item items[TOGETHER];
	struct plan *plan = make_plan("gaussian=size=5,sobel", BORDER_REFLECT, &like);

	for (uint32_t i = 0; i < TOGETHER; i++) {
		const struct kind kind = mixed_kind(&like, i);

		item_make(&items[i], plan, &kind, i);
	}
	for (int i = 0; i < LANE_MODES; i++)
		lane_rest(harness.lane[i]);
	try_worker(plan, items);
	for (uint32_t i = 0; i < TOGETHER; i++)
		item_free(&items[i]);
	plan_free(&plan);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
	    {"forms", test_forms, true},
	    {"works", test_works, false},
	    {"memory", test_memory, false},
	    {"worker", test_worker, false},
	};
	int status;

	options_parse(argc, argv);
	harness_init(&harness, SLOTS * SLOT);
	harness_prepare_jpeg(&harness);
	for (int i = 0; i < LANE_MODES; i++)
		lane_allow_jpeg(harness.lane[i], harness.programs, MEMORY);
	tests_run(tests, sizeof tests / sizeof *tests);
	status = tests_end();
	harness_fini(&harness);
	return status;
}
