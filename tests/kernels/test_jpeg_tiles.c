/* Tiles that are JPEGs, through lanes and through a worker: the bytes are those that libjpeg-turbo
 * makes of the same image, filtered by the same plan as a tile of pixels; or there are flags, and
 * nothing is written.
 *
 * test_jpeg_tiles [--platform N] [--device N] [--kernel-dir DIR] [--only NAME] [--brief]
 * --brief: some small images alone, for Oclgrind. */
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memfd.h"
#include "codec/jpeg_header.h"
#include "device/worker.h"
#include "harness.h"
#include "jpegs.h"

enum {
	GUARD = 4096,
	POISON = 0xA5,
	SLOT = 256 << 10, /* bytes of each image, in both arenas */
	SLOTS = 24,
	MEMORY = 256 << 20,
	TOGETHER = 12, /* tiles for the worker */
};

static struct harness harness;
static uint32_t failures;
static bool brief;

static void fail(const char *what)
{
	printf("# %s\n", what);
	failures++;
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "test_jpeg_tiles: %s\n", what);
	exit(2);
}

static uint32_t random_number(uint32_t below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((state >> 33) % below);
}

/* A filter, and the encoding of its result. */
struct wanted {
	struct jpegs_wish file;
	enum jpegs_sampling sampling;
	unsigned quality;
};

/* An image in a slot of the arenas. */
struct item {
	struct wanted wanted;
	uint8_t *file;
	size_t size;
	struct jpeg_scan scan;
	struct tile tile;
	struct jpeg_work work;
};

static uint32_t bands_of(enum jpegs_sampling sampling)
{
	return sampling == JPEGS_GRAY ? 1 : 3;
}

static const char *regions; /* those of the chains that follow; NULL: none */

static struct chain *parse(const char *filters, const char *border)
{
	static struct chain chain;
	struct problem problem;

	chain_init(&chain);
	while (strcmp(border_name(chain.border), border))
		chain.border++;
	if (chain_parse(&chain, filters, &problem) || chain_check(&chain, &problem) ||
	    (regions && chain_set_regions(&chain, regions, &problem)))
		die(problem.detail);
	if (chain.border == BORDER_CONSTANT) {
		chain.border_values = 1;
		chain.border_value[0] = 200;
	}
	return &chain;
}

/* A variant_chooser. */
static void keep_general(void *user, const struct work *work, enum kernel *kernel,
                         struct shape *shape)
{
	(void)user, (void)work, (void)kernel, (void)shape;
}

static struct plan *make_plan(const char *filters, const char *border,
                              const struct jpegs_wish *wish)
{
	const struct image image = {.width = wish->width,
	                            .height = wish->height,
	                            .bands = bands_of(wish->sampling),
	                            .type = PIXEL_U8};
	struct plan *plan;

	if (plan_new(harness.programs, parse(filters, border), &image, keep_general, NULL, &plan) ||
	    !harness_await(&harness, plan, TILE_JPEG))
		die("no plan");
	return plan;
}

/* Puts an image into slot `number`, whose output is poison. */
static void place(struct item *item, const struct plan *plan, uint32_t number)
{
	const struct wanted *w = &item->wanted;
	bool crop = plan->chain.border == BORDER_CROP;
	char *in = (char *)harness.memory.in + (uint64_t)number * SLOT;

	item->tile = (struct tile){.form = TILE_JPEG,
	                           .job = number,
	                           .x0 = crop ? plan->halo_x : 0,
	                           .y0 = crop ? plan->halo_y : 0,
	                           .work = (uint64_t)number * SLOT,
	                           .in = (uint64_t)number * SLOT + JPEG_WORK_SIZE,
	                           .out = (uint64_t)number * SLOT + GUARD,
	                           .in_size = item->scan.size,
	                           .out_size = SLOT - 2 * GUARD};
	item->tile.width = plan->image.width - 2 * item->tile.x0;
	item->tile.height = plan->image.height - 2 * item->tile.y0;
	item->work = (struct jpeg_work){.scan = item->scan,
	                                .target = {.h = w->sampling >= JPEGS_422 ? 2 : 1,
	                                           .v = w->sampling == JPEGS_420 ? 2 : 1}};
	item->work.scan.offset = 0;
	for (int p = 0; p < JPEG_PLANES; p++)
		jpeg_quality_table(w->quality, (enum jpeg_plane)p,
		                   item->work.target.quantization[p]);
	if (JPEG_WORK_SIZE + item->scan.size > SLOT)
		die("a slot is too small");
	memcpy(in, &item->work, sizeof item->work);
	memcpy(in + JPEG_WORK_SIZE, item->file + item->scan.offset, item->scan.size);
	memset((char *)harness.memory.out + (uint64_t)number * SLOT, POISON, SLOT);
}

static void item_make(struct item *item, struct wanted wanted, enum jpegs_content content,
                      uint32_t seed)
{
	struct jpegs_picture p = jpegs_draw(wanted.file.width, wanted.file.height,
	                                    bands_of(wanted.file.sampling), content, seed);

	*item = (struct item){.wanted = wanted};
	item->file = jpegs_encode(&p, &wanted.file, &item->size);
	if (jpeg_header_read(item->file, item->size, &item->scan))
		die("not for a device");
	free(p.samples);
}

/* Makes the filtered image; false if libjpeg-turbo cannot decode the file. */
static bool filter(const struct item *item, const struct plan *plan, struct jpegs_picture *to)
{
	struct jpegs_picture from;
	struct problem problem;

	*to = (struct jpegs_picture){.bands = plan->image.bands};
	if (!jpegs_decode_any(item->file, item->size, &from))
		return false;
	if (chain_output_size(&plan->chain, &plan->image, &to->width, &to->height, &problem))
		die(problem.detail);
	to->samples = malloc((size_t)to->width * to->height * to->bands);
	if (!to->samples ||
	    harness_filter(&harness, LANE_COPY, plan, from.samples, to->height, to->samples).error)
		die("a tile of pixels failed");
	free(from.samples);
	return true;
}

/* Returns the scan that libjpeg-turbo makes of it; NULL if it cannot. */
static uint8_t *expect(const struct item *item, const struct plan *plan, size_t *size)
{
	const struct wanted *w = &item->wanted;
	struct jpegs_wish wish = {.sampling = w->sampling, .quality = w->quality};
	struct jpegs_picture to;
	struct jpeg_scan scan;
	uint8_t *file, *bytes;
	size_t file_size;

	if (!filter(item, plan, &to))
		return NULL;
	wish.width = to.width;
	wish.height = to.height;
	file = jpegs_encode(&to, &wish, &file_size);
	if (jpeg_header_read(file, file_size, &scan))
		die("libjpeg's file has no scan");
	*size = scan.size;
	bytes = malloc(scan.size);
	if (!bytes)
		die("no memory");
	memcpy(bytes, file + scan.offset, scan.size);
	free(to.samples);
	free(file);
	return bytes;
}

static bool all_poison(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != POISON)
			return false;
	return true;
}

/* Compares a slot with the bytes that are expected there, and poison around them. */
static void compare(const struct item *item, const uint8_t *bytes, size_t size,
                    const struct message_tile_done *done)
{
	const uint8_t *out = (const uint8_t *)harness.memory.out + item->tile.out;
	const struct jpegs_wish *w = &item->wanted.file;
	const char *wrong =
	    done->error                ? "an error"
	    : done->jpeg_flags         ? "flags"
	    : done->size != size       ? "another size"
	    : memcmp(out, bytes, size) ? "other bytes"
	    : !all_poison(out - GUARD, GUARD) || !all_poison(out + size, SLOT - GUARD - size)
	        ? "bytes around the result were written"
	        : NULL;

	if (!wrong)
		return;
	printf("# %ux%u sampling %d interval %u, to sampling %d: error %u flags %x size %llu of "
	       "%zu\n",
	       w->width, w->height, (int)w->sampling, w->restart_interval,
	       (int)item->wanted.sampling, done->error, done->jpeg_flags,
	       (unsigned long long)done->size, size);
	fail(wrong);
}

static void compare_flagged(const struct item *item, const struct message_tile_done *done)
{
	const uint8_t *slot = (const uint8_t *)harness.memory.out + item->tile.out - GUARD;

	if (done->error || !done->jpeg_flags || done->size)
		fail("expected flags");
	if (!all_poison(slot, SLOT))
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

/* One image on its own, by both lanes in turn. */
static void try_alone(const char *filters, const char *border, const struct wanted *wanted,
                      enum jpegs_content content)
{
	static uint32_t turn;
	struct lane *lane = harness.lane[turn++ % LANE_MODES];
	struct plan *plan = make_plan(filters, border, &wanted->file);
	struct message_tile_done done[STACK_MAX];
	struct item item;
	uint8_t *bytes;
	size_t size;

	if (turn % 3 == 0)
		lane_rest(lane); /* new buffers are poison */
	item_make(&item, *wanted, content, turn);
	bytes = expect(&item, plan, &size);
	place(&item, plan, turn % SLOTS);
	run(lane, plan, &item, 1, done);
	compare(&item, bytes, size, done);
	if (done->launches < 3 || done->launch[0].kernel != KERNEL_JPEG_DECODE ||
	    done->launch[done->launches - 1].kernel != KERNEL_JPEG_ENCODE ||
	    done->upload_bytes != item.scan.size || done->download_bytes != size)
		fail("launches or copies are not told");
	free(bytes);
	free(item.file);
	plan_free(&plan);
}

/* Tests ---------------------------------------------------------------------------------------- */

static void test_borders(void)
{
	static const struct wanted wanted[] = {
	    {{50, 37, JPEGS_420, 90, 0, 0, 0, 0}, JPEGS_420, 80},
	    {{21, 9, JPEGS_GRAY, 70, 0, 0, 0, 0}, JPEGS_GRAY, 95},
	};

	for (enum border border = 0; border < BORDERS; border++)
		for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
			try_alone("gaussian=size=5,sobel", border_name(border), &wanted[i],
			          JPEGS_NOISE);
			try_alone("box=size=3", border_name(border), &wanted[i], JPEGS_SMOOTH);
		}
}

static void test_images(void)
{
	static const struct {
		const char *filters, *border;
		struct wanted wanted;
		enum jpegs_content content;
	} rows[] = {
	    {"gaussian=size=3",
	     "replicate",
	     {{1, 1, JPEGS_GRAY, 90, 0, 0, 0, 0}, JPEGS_GRAY, 90},
	     JPEGS_NOISE},
	    {"gaussian=size=7",
	     "reflect",
	     {{1, 41, JPEGS_420, 90, 0, 0, 0, 0}, JPEGS_444, 50},
	     JPEGS_NOISE},
	    {"sobel",
	     "reflect101",
	     {{67, 1, JPEGS_422, 80, 0, 0, 0, 0}, JPEGS_420, 75},
	     JPEGS_NOISE},
	    {"box=size=21",
	     "wrap",
	     {{5, 3, JPEGS_444, 80, 1, 0, 0, 0}, JPEGS_422, 75},
	     JPEGS_NOISE},
	    {"gaussian=sigma=1,unsharp",
	     "constant",
	     {{333, 97, JPEGS_422, 85, 3, .optimize = true}, JPEGS_420, 85},
	     JPEGS_PAGE},
	    {"bilateral=radius=3",
	     "replicate",
	     {{64, 48, JPEGS_444, 95, 0, 0, 0, 0}, JPEGS_444, 100},
	     JPEGS_SMOOTH},
	    {"gaussian=sigma=30",
	     "reflect",
	     {{260, 150, JPEGS_420, 85, 7, 0, 0, 0}, JPEGS_420, 85},
	     JPEGS_PAGE},
	    {"box=size=3,dog,laplacian",
	     "crop",
	     {{130, 70, JPEGS_420, 60, 0, .optimize = true}, JPEGS_422, 90},
	     JPEGS_SMOOTH},
	    {"convolve=kernel=1 2 1",
	     "crop",
	     {{9, 8, JPEGS_GRAY, 60, 1, 0, 0, 0}, JPEGS_GRAY, 1},
	     JPEGS_NOISE},
	    {"gaussian=size=5",
	     "replicate",
	     {{701, 433, JPEGS_420, 85, 0, 0, 0, 0}, JPEGS_420, 85},
	     JPEGS_SMOOTH},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		try_alone(rows[i].filters, rows[i].border, &rows[i].wanted, rows[i].content);
}

/* Changes a few bytes of the scan. */
static void damage(struct item *item)
{
	for (uint32_t n = random_number(3); n < 3; n++)
		item->file[item->scan.offset + random_number((uint32_t)item->scan.size)] =
		    (uint8_t)random_number(256);
}

static void test_damaged(void)
{
	uint32_t exact = 0, flagged = 0;

	for (uint32_t round = 0; round < 60; round++) {
		const struct wanted wanted = {
		    {16 + random_number(60), 16 + random_number(40),
		     (enum jpegs_sampling)random_number(JPEGS_420 + 1), 20 + random_number(80),
		     random_number(2) * random_number(9), .optimize = random_number(2)},
		    round % 2 ? JPEGS_GRAY : JPEGS_420,
		    80};
		struct message_tile_done done[STACK_MAX];
		struct jpeg_scan before;
		struct item item;
		struct plan *plan;
		uint8_t *bytes;
		size_t size;

		item_make(&item, wanted, (enum jpegs_content)random_number(JPEGS_CONTENTS), round);
		if (item.scan.components == 1 || wanted.sampling == JPEGS_GRAY)
			item.wanted.sampling = item.scan.components == 1 ? JPEGS_GRAY : JPEGS_444;
		plan = make_plan("gaussian=size=3", "replicate", &wanted.file);
		before = item.scan;
		damage(&item);
		if (!jpeg_header_read(item.file, item.size, &item.scan) &&
		    item.scan.size == before.size) {
			bytes = expect(&item, plan, &size);
			place(&item, plan, 0);
			run(harness.lane[round % LANE_MODES], plan, &item, 1, done);
			if (done->jpeg_flags || !bytes)
				compare_flagged(&item, done);
			else
				compare(&item, bytes, size, done);
			*(done->jpeg_flags ? &flagged : &exact) += 1;
			free(bytes);
		}
		free(item.file);
		plan_free(&plan);
	}
	printf("# damaged: %u exact, %u flagged\n", exact, flagged);
	if (!exact || !flagged)
		fail("expected some of both");
}

/* Images of one size and everything else different; one is damaged, one has too little room. */
static void try_stack(const char *filters)
{
	enum { IMAGES = 7, DAMAGED = 3, SMALL = 5 };
	static const struct jpegs_wish like = {93, 61, JPEGS_420, 0, 0, 0, 0, 0};
	struct plan *plan = make_plan(filters, "reflect101", &like);
	struct message_tile_done done[STACK_MAX];
	struct item items[IMAGES];
	uint8_t *bytes[IMAGES];
	size_t size[IMAGES];

	for (uint32_t i = 0; i < IMAGES; i++) {
		struct wanted wanted = {like, (enum jpegs_sampling)(JPEGS_444 + i % 3), 60 + i};

		wanted.file.sampling = (enum jpegs_sampling)(JPEGS_444 + i / 2 % 3);
		wanted.file.quality = 50 + 7 * i;
		wanted.file.restart_interval = i % 2 * 5;
		wanted.file.optimize = i % 3 == 0;
		item_make(&items[i], wanted, (enum jpegs_content)(i % JPEGS_CONTENTS), i);
		bytes[i] = expect(&items[i], plan, &size[i]);
	}
	for (uint32_t i = 0; i < IMAGES; i++) {
		place(&items[i], plan, (5 * i + 3) % SLOTS);
		items[i].tile.out_size = size[i] - (i == SMALL);
	}
	memset((char *)harness.memory.in + items[DAMAGED].tile.in, 0xFF, 90);
	run(harness.lane[LANE_COPY], plan, items, IMAGES, done);
	for (uint32_t i = 0; i < IMAGES; i++) {
		if (done[i].stack != IMAGES || done[i].place != i ||
		    done[i].job != items[i].tile.job)
			fail("an answer is not of this stack");
		if (i == DAMAGED || i == SMALL)
			compare_flagged(&items[i], &done[i]);
		else
			compare(&items[i], bytes[i], size[i], &done[i]);
	}
	if (done[SMALL].jpeg_flags != JPEG_FLAG_ROOM)
		fail("expected no room");
	for (uint32_t i = 0; i < IMAGES; i++) {
		free(bytes[i]);
		free(items[i].file);
	}
	plan_free(&plan);
}

/* By kernels that take a stack as one high tile, and by some that know their place in the image. */
static void test_stack(void)
{
	try_stack("gaussian=size=5,sobel");
	regions = "10,5,40,30;ellipse:50,20,33,28";
	try_stack("pixelate=size=7,box=size=3");
	regions = NULL;
}

/* Makes the output of an item pixels. */
static void place_result(struct item *item, const struct plan *plan)
{
	item->tile.form = TILE_DECODE;
	item->tile.out_size = 0;
	item->tile.out_pitch = (uint32_t)row_pitch(item->tile.width * plan->image.bands);
}

/* Makes the input of an item pixels, with a replicated halo. */
static void place_source(struct item *item, const struct plan *plan)
{
	const int64_t width = plan->image.width, height = plan->image.height;
	const int64_t bands = plan->image.bands, halo_x = plan->halo_x, halo_y = plan->halo_y;
	struct tile *tile = &item->tile;
	struct jpegs_picture from;
	uint8_t *to;

	if (!jpegs_decode_any(item->file, item->size, &from))
		die("libjpeg");
	tile->form = TILE_ENCODE;
	tile->in_size = 0;
	tile->in_pitch = (uint32_t)row_pitch((uint64_t)((width + 2 * halo_x) * bands));
	tile->in += ((uint64_t)halo_y * tile->in_pitch + (uint64_t)(halo_x * bands) + 63) / 64 * 64;
	to = (uint8_t *)harness.memory.in + tile->in;
	for (int64_t y = -halo_y; y < height + halo_y; y++)
		for (int64_t x = -halo_x; x < width + halo_x; x++) {
			int64_t from_y = y < 0        ? 0
			                 : y < height ? y
			                              : height - 1,
			        from_x = x < 0       ? 0
			                 : x < width ? x
			                             : width - 1;

			memcpy(to + y * tile->in_pitch + x * bands,
			       from.samples + (from_y * width + from_x) * bands, (size_t)bands);
		}
	memset(&item->work.scan, 0xFF, sizeof item->work.scan); /* without meaning */
	memcpy((char *)harness.memory.in + tile->work, &item->work, sizeof item->work);
	free(from.samples);
}

/* Compares rows of pixels in a slot, with poison before and after them. */
static void compare_pixels(const struct item *item, const struct jpegs_picture *expected,
                           const struct message_tile_done *done)
{
	const size_t row = (size_t)expected->width * expected->bands, pitch = item->tile.out_pitch;
	const uint8_t *out = (const uint8_t *)harness.memory.out + item->tile.out;
	const uint8_t *end = out + (expected->height - 1) * pitch + row;

	if (done->error || done->jpeg_flags || done->size)
		fail("no pixels");
	for (uint32_t y = 0; y < expected->height; y++)
		if (memcmp(out + y * pitch, expected->samples + y * row, row) != 0) {
			fail("other pixels");
			break;
		}
	if (!all_poison(out - GUARD, GUARD) || !all_poison(end, (size_t)(out - GUARD + SLOT - end)))
		fail("bytes around the pixels were written");
}

/* Images of this form, in a stack if there are several; the last one of several is damaged if only
 * the input is a scan. */
static void try_side(enum tile_form form, enum lane_mode mode, const char *filters,
                     const struct jpegs_wish *wish, uint32_t count)
{
	enum { MOST = 4 };
	struct plan *plan = make_plan(filters, "replicate", wish);
	struct message_tile_done done[STACK_MAX];
	struct item items[MOST];
	struct jpegs_picture pixels[MOST];
	uint8_t *bytes[MOST];
	size_t size[MOST];
	bool damaged = form == TILE_DECODE && count > 1;

	for (uint32_t i = 0; i < count; i++) {
		struct wanted wanted = {*wish, wish->sampling, 60 + 9 * i};

		item_make(&items[i], wanted, (enum jpegs_content)(i % JPEGS_CONTENTS), i + count);
		bytes[i] = expect(&items[i], plan, &size[i]);
		if (!filter(&items[i], plan, &pixels[i]))
			die("libjpeg");
	}
	for (uint32_t i = 0; i < count; i++) {
		place(&items[i], plan, (5 * i + 2) % SLOTS);
		if (form == TILE_DECODE)
			place_result(&items[i], plan);
		if (form == TILE_ENCODE)
			place_source(&items[i], plan);
	}
	if (damaged)
		memset((char *)harness.memory.in + items[count - 1].tile.in, 0xFF, 20);
	run(harness.lane[mode], plan, items, count, done);
	for (uint32_t i = 0; i < count; i++) {
		if (done[i].stack != count)
			fail("not one stack");
		if (form & TILE_ENCODE)
			compare(&items[i], bytes[i], size[i], &done[i]);
		else if (!damaged || i + 1 < count)
			compare_pixels(&items[i], &pixels[i], &done[i]);
		else if (!done[i].jpeg_flags)
			fail("expected flags");
		free(bytes[i]);
		free(pixels[i].samples);
		free(items[i].file);
	}
	plan_free(&plan);
}

static void test_sides(void)
{
	static const struct jpegs_wish wishes[] = {{93, 61, JPEGS_420, 90, 0, 0, 0, 0},
	                                           {64, 33, JPEGS_GRAY, 90, 0, 0, 0, 0},
	                                           {1, 40, JPEGS_444, 90, 0, 0, 0, 0}},
	                               small = {18, 20, JPEGS_420, 80, 0, 0, 0, 0};
	static const char *const filters[] = {"gaussian=size=5,sobel", "box=size=1", "box=size=9"};

	for (enum tile_form form = TILE_DECODE; form <= TILE_JPEG; form++) {
		if (brief)
			try_side(form, LANE_COPY, "gaussian=size=3", &small, 2);
		for (int i = 0; i < 3 && !brief; i++) {
			try_side(form, LANE_COPY, filters[i], &wishes[i], 1);
			try_side(form, LANE_ZERO_COPY, filters[i], &wishes[i], 1);
			try_side(form, LANE_COPY, filters[i], &wishes[i], 4);
		}
	}
}

/* A description with any wrong number is refused. */
static void test_works(void)
{
	static const struct wanted color = {{40, 30, JPEGS_420, 90, 0, 0, 0, 0}, JPEGS_420, 80},
	                           gray = {{40, 30, JPEGS_GRAY, 90, 0, 0, 0, 0}, JPEGS_GRAY, 80};
	struct plan *plan = make_plan("box=size=3", "replicate", &color.file),
	            *gray_plan = make_plan("box=size=3", "replicate", &gray.file);
	struct item item, gray_item;
	struct jpeg_work work;
	unsigned refused = 0;

	item_make(&item, color, JPEGS_SMOOTH, 1);
	item_make(&gray_item, gray, JPEGS_SMOOTH, 1);
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
		refused++;                                                                         \
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
	REFUSED(scan.size, item.scan.size + 1);
	REFUSED(scan.size, item.scan.size - 1);
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
	free(item.file);
	free(gray_item.file);
	plan_free(&plan);
	plan_free(&gray_plan);
}

static uint64_t buffers_of(const struct jpeg_pipeline *p)
{
	uint64_t bytes = 0;

	for (int i = 0; i < JPEG_BUFFERS_MAX; i++)
		bytes += p->buffer[i].size;
	return bytes;
}

/* Buffers grow to the size computed ahead, and not further. */
static void test_room(void)
{
	enum { BATCH = 3, SLACK = 4096 };
	cl_int code;
	cl_command_queue queue =
	    clCreateCommandQueue(harness.device.context, harness.device.id, 0, &code);

	for (uint32_t round = 0; round < 8; round++) {
		const struct jpegs_wish wish = {1 + random_number(round % 2 ? 20 : 300),
		                                1 + random_number(round % 3 ? 200 : 10),
		                                (enum jpegs_sampling)random_number(JPEGS_420 + 1),
		                                95,
		                                round % 4,
		                                0,
		                                0,
		                                0};
		uint32_t bands = bands_of(wish.sampling), pitch = (wish.width * bands + 7) / 8 * 8;
		struct jpeg_room in = jpeg_room(&jpeg_decode_direction, wish.width, wish.height,
		                                bands),
		                 out = jpeg_room(&jpeg_encode_direction, wish.width, wish.height,
		                                 bands);
		static struct jpeg_decoder decoder;
		static struct jpeg_encoder encoder;
		struct jpeg_decode_job from[BATCH];
		struct jpeg_encode_job to[BATCH];
		struct item item;
		uint64_t scans = 0;
		cl_mem samples = clCreateBuffer(harness.device.context, CL_MEM_READ_WRITE,
		                                (uint64_t)pitch * wish.height, NULL, &code);

		item_make(&item, (struct wanted){wish, wish.sampling, 80}, JPEGS_NOISE, round);
		for (uint32_t i = 0; i < BATCH; i++) {
			from[i] = (struct jpeg_decode_job){&item.scan, item.file + item.scan.offset,
			                                   0, pitch};
			to[i] = (struct jpeg_encode_job){.width = wish.width,
			                                 .height = wish.height,
			                                 .components = bands,
			                                 .h = item.scan.h,
			                                 .v = item.scan.v,
			                                 .pitch = pitch};
			for (int p = 0; p < JPEG_PLANES; p++)
				jpeg_quality_table(80, (enum jpeg_plane)p, to[i].quantization[p]);
			scans += item.scan.size;
		}
		if (jpeg_decoder_init(&decoder, harness.programs) ||
		    jpeg_encoder_init(&encoder, harness.programs) ||
		    jpeg_decoder_enqueue(&decoder, queue, from, BATCH, samples, NULL) ||
		    jpeg_encoder_enqueue(&encoder, queue, to, BATCH, samples, NULL))
			die("cannot enqueue");
		clFinish(queue);
		if (buffers_of(&decoder.pipeline) > BATCH * in.bytes / 8 * 9 + 3 * scans + SLACK ||
		    buffers_of(&encoder.pipeline) > BATCH * out.bytes / 8 * 9 + SLACK)
			fail("buffers are larger than was worked out");
		jpeg_decoder_fini(&decoder);
		jpeg_encoder_fini(&encoder);
		clReleaseMemObject(samples);
		free(item.file);
	}
	clReleaseCommandQueue(queue);
}

/* A lane takes the stacks that fit into its memory, and no more; it releases another kind's
 * buffers. */
static void test_memory(void)
{
	static const struct wanted wide = {{400, 40, JPEGS_420, 85, 0, 0, 0, 0}, JPEGS_420, 85},
	                           high = {{40, 400, JPEGS_444, 85, 0, 0, 0, 0}, JPEGS_444, 85};
	struct plan *plan = make_plan("gaussian=size=3", "replicate", &wide.file);
	struct lane *lane = harness.lane[LANE_COPY];
	struct plan *high_plan = make_plan("gaussian=size=9,sobel", "replicate", &high.file);
	struct jpeg_lane held = {.memory = 0};
	struct item item, high_item;
	uint64_t scans;
	uint32_t some, more;

	item_make(&item, wide, JPEGS_SMOOTH, 1);
	place(&item, plan, 0);
	item_make(&high_item, high, JPEGS_SMOOTH, 1);
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
	for (int i = 0; i < 4; i++)
		try_alone("gaussian=size=3", "replicate", i / 2 ? &high : &wide, JPEGS_SMOOTH);
	lane_allow_jpeg(lane, NULL, MEMORY);
	if (lane_jpeg_room(lane, plan, &item.tile, &scans))
		fail("a lane without programs takes JPEGs");
	lane_allow_jpeg(lane, harness.programs, MEMORY);
	free(item.file);
	free(high_item.file);
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

	if (memfd_fixed("in", SLOTS * SLOT, &fds[0]) || memfd_fixed("out", SLOTS * SLOT, &fds[1]) ||
	    arena_map(memory, fds[0], SLOTS * SLOT, PROT_READ | PROT_WRITE, fds[1], SLOTS * SLOT,
	              PROT_READ | PROT_WRITE))
		die("no arena");
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
static uint32_t try_together(const struct plan *plan, struct item *items, uint8_t *const *bytes,
                             const size_t *size)
{
	enum { INVALID = 2, DAMAGED = 5, SMALL = 7, OUTSIDE = 9 };
	uint32_t stack = 0;

	for (uint32_t i = 0; i < TOGETHER; i++) {
		place(&items[i], plan, i);
		items[i].tile.out_size = size[i];
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
			compare(&items[n], bytes[n], size[n], done);
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
static void try_changing(const struct plan *plan, struct item *item, const uint8_t *bytes,
                         size_t size)
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
			compare(item, bytes, size, &m.tile_done);
	}
	atomic_store(&changer.stop, true);
	pthread_join(thread, NULL);
}

/* An image beyond the share of memory is refused before anything of it is read. */
static void try_large(void)
{
	static const struct jpegs_wish wish = {1300, 1300, JPEGS_420, 90, 0, 0, 0, 0};
	struct plan *plan = make_plan("box=size=3", "replicate", &wish);
	struct item item = {.wanted = {wish, JPEGS_420, 90}, .scan = {.size = 100}};
	struct message m;

	item.file =
	    (uint8_t *)"a hundred bytes of a scan that nobody reads, or if they do then only to "
	               "learn that there are no codes in it";
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
static void try_worker(const struct plan *plan, struct item *items, uint8_t *const *bytes,
                       const size_t *size)
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
		stack = try_together(plan, items, bytes, size);
	if (stack < 2)
		fail("tiles that wait together do not share a launch");
	try_changing(plan, &items[0], bytes[0], size[0]);
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
	static const struct jpegs_wish like = {93, 61, JPEGS_420, 85, 0, 0, 0, 0};
	struct item items[TOGETHER];
	struct plan *plan = make_plan("gaussian=size=5,sobel", "reflect", &like);
	uint8_t *bytes[TOGETHER];
	size_t size[TOGETHER];

	plan->chain.variant = VARIANT_GENERAL; /* for the worker, which would choose others */
	for (uint32_t i = 0; i < TOGETHER; i++) {
		item_make(&items[i],
		          (struct wanted){like, (enum jpegs_sampling)(JPEGS_444 + i % 3), 85},
		          JPEGS_NOISE, i);
		bytes[i] = expect(&items[i], plan, &size[i]);
	}
	for (int i = 0; i < LANE_MODES; i++)
		lane_rest(harness.lane[i]);
	try_worker(plan, items, bytes, size);
	for (uint32_t i = 0; i < TOGETHER; i++) {
		free(bytes[i]);
		free(items[i].file);
	}
	plan_free(&plan);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {{"borders", test_borders}, {"images", test_images}, {"damaged", test_damaged},
             {"stack", test_stack},     {"sides", test_sides},   {"works", test_works},
             {"room", test_room},       {"memory", test_memory}, {"worker", test_worker}};

static void open_harness(unsigned platform, unsigned number, const char *kernel_dir)
{
	if (!harness_init(&harness, platform, number, SLOTS * SLOT, kernel_dir))
		exit(2);
	programs_hurry(harness.programs);
	programs_prepare(harness.programs, true);
	programs_wait(harness.programs);
	for (int i = 0; i < LANE_MODES; i++)
		lane_allow_jpeg(harness.lane[i], harness.programs, MEMORY);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"kernel-dir", required_argument, NULL, 'k'},
	                                        {"platform", required_argument, NULL, 'p'},
	                                        {"device", required_argument, NULL, 'd'},
	                                        {"only", required_argument, NULL, 'o'},
	                                        {"brief", no_argument, NULL, 'b'},
	                                        {0}};
	const char *kernel_dir = NULL, *only = NULL;
	unsigned platform = 0, number = 0, passed = 0, failed = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 'k')
			kernel_dir = optarg;
		else if (c == 'p')
			platform = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'd')
			number = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'o')
			only = optarg;
		else if (c == 'b')
			brief = true;
		else
			return 2;
	open_harness(platform, number, kernel_dir);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		if ((only && strcmp(only, tests[i].name) != 0) ||
		    (brief && tests[i].run != test_sides))
			continue;
		failures = 0;
		tests[i].run();
		printf("%sok - %s\n", failures ? "not " : "", tests[i].name);
		fflush(stdout);
		*(failures ? &failed : &passed) += 1;
	}
	harness_fini(&harness);
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
