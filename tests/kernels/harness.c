/* The command line, the lines of results, and the test's codec, which pads by border_map(): tiles
 * one at a time at the arena's start, or as a stack. */
#include "harness.h"

#include <glib.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memfd.h"
#include "border.h"
#include "device/cl/environment.h"

/* Poison for input is NaN where pixels are floats. */
enum { GUARD = 4096, POISON_IN = 0xFF, POISON_OUT = 0xA5 };

/* Oclgrind keeps 50 bytes for every byte of a buffer: less for small images. */
enum { NOTICE_MS = 120000, SAMPLES_SMALL = 1000 };

struct options options = {.seed = 1, .most = 1e9};
uint64_t random_state = 1;

static unsigned failures, totals[2]; /* the test's in progress; tests that failed and passed */

void options_parse(int argc, char **argv)
{
	const GOptionEntry entries[] = {
	    {"platform", 0, 0, G_OPTION_ARG_INT, &options.platform, "OpenCL platform", "N"},
	    {"device", 0, 0, G_OPTION_ARG_INT, &options.device, "its device", "N"},
	    {"only", 0, 0, G_OPTION_ARG_STRING, &options.only, "one test or variant", "NAME"},
	    {"seed", 0, 0, G_OPTION_ARG_INT64, &options.seed, "makes other trials", "N"},
	    {"most", 0, 0, G_OPTION_ARG_DOUBLE, &options.most, "bounds images, for slow checkers",
	     "SAMPLES"},
	    {"every", 0, 0, G_OPTION_ARG_INT, &options.every,
	     "one trial of N; else all if TEST_ALL is set, or a fifth", "N"},
	    {"rounds", 0, 0, G_OPTION_ARG_INT, &options.rounds, "of damaged JPEGs, 64 in each",
	     "N"},
	    {"copy", 0, 0, G_OPTION_ARG_NONE, &options.copy,
	     "for checkers that do not see what the host writes into shared memory", NULL},
	    {"no-images", 0, 0, G_OPTION_ARG_NONE, &options.no_images,
	     "without kernels that read image objects", NULL},
	    {"brief", 0, 0, G_OPTION_ARG_NONE, &options.brief, "a few small JPEGs", NULL},
	    {0}};
	GOptionContext *context = g_option_context_new(NULL);
	GError *error = NULL;

	g_option_context_add_main_entries(context, entries, NULL);
	options.every = getenv("TEST_ALL") ? 1 : EVERY;
	if (!g_option_context_parse(context, &argc, &argv, &error))
		die(error->message);
	if (argc > 1 || options.every < 1)
		die("see --help");
	g_option_context_free(context);
	random_state = (uint64_t)options.seed;
	log_init("tests", LOG_LEVEL_WARNING, LOG_FORMAT_AUTO);
}

uint32_t random_below(uint32_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((random_state >> 33) % n);
}

void fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	printf("# FAILED ");
	vprintf(format, list);
	printf("\n");
	va_end(list);
	failures++;
}

void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(2);
}

void must(cl_int code)
{
	if (code)
		die(opencl_error_name(code));
}

void test_end(const char *format, ...)
{
	va_list list;

	totals[!failures]++;
	va_start(list, format);
	printf("%sok %u - ", failures ? "not " : "", totals[0] + totals[1]);
	vprintf(format, list);
	printf("\n");
	va_end(list);
	fflush(stdout);
	failures = 0;
}

int tests_end(void)
{
	printf("1..%u\n%u passed, %u failed\n", totals[0] + totals[1], totals[1], totals[0]);
	return totals[0] || !totals[1];
}

void tests_run(const struct test *tests, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if ((options.only && strcmp(options.only, tests[i].name) != 0) ||
		    (options.brief && !tests[i].brief))
			continue;
		tests[i].run();
		test_end("%s", tests[i].name);
	}
}

bool all_poison(const void *bytes, size_t size, uint8_t poison)
{
	for (size_t i = 0; i < size; i++)
		if (((const uint8_t *)bytes)[i] != poison)
			return false;
	return true;
}

bool poison_around(const struct rows *rows, const void *start, const void *end, uint8_t poison)
{
	const char *before = start;
	bool intact = true;

	for (uint32_t y = 0; y < rows->count; y++) {
		const char *row = (const char *)rows->first + y * rows->pitch;

		intact &= all_poison(before, (size_t)(row - before), poison);
		before = row + rows->bytes;
	}
	return intact && all_poison(before, (size_t)((const char *)end - before), poison);
}

void harness_map(struct arena *memory, uint64_t size, int fds[2])
{
	if (memfd_fixed("in", size, &fds[0]) || memfd_fixed("out", size, &fds[1]) ||
	    arena_map(memory, fds[0], size, PROT_READ | PROT_WRITE, fds[1], size,
	              PROT_READ | PROT_WRITE))
		die("no arena");
}

void harness_init(struct harness *h, uint64_t arena_size)
{
	int fds[2];

	*h = (struct harness){0};
	if (options.most <= SAMPLES_SMALL)
		arena_size /= 4;
	environment_set(NULL);
	harness_map(&h->memory, arena_size, fds);
	if (device_open(&h->device, (unsigned)options.platform, (unsigned)options.device) ||
	    !(h->device.in_test = true) ||
	    programs_new(&h->programs, &h->device, NULL, getenv("CONVOLVED_CACHE"), 0,
	                 SPECIALS_MANY, -1) ||
	    (h->notice = eventfd(0, EFD_CLOEXEC)) < 0 ||
	    /* Oclgrind runs one kernel at a time. */
	    (h->device.in_place && !options.copy && pool_new(&h->device, h->notice, &h->pool)) ||
	    lane_new(&h->device, h->pool, &h->lane[LANE_ZERO_COPY]) ||
	    lane_new(&h->device, NULL, &h->lane[LANE_COPY]) ||
	    device_arena_open(&h->arena, &h->device, fds[0], arena_size, fds[1], arena_size))
		die("cannot set up the device");
	close(fds[0]);
	close(fds[1]);
	for (int type = 0; options.no_images && type < PIXEL_TYPES; type++)
		h->device.image_bands[type] = h->device.share_bands[type] = 0;
	programs_hurry(h->programs);
}

void harness_prepare_jpeg(struct harness *h)
{
	struct message_programs count;

	programs_prepare(h->programs, true);
	programs_wait(h->programs);
	programs_count(h->programs, &count);
	if (!count.jpeg || count.failed)
		die("JPEG's programs cannot be compiled");
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

void harness_parse(struct chain *chain, const char *text)
{
	char *filters = g_strdup(text), *regions = strchr(filters, '&');
	struct problem problem = {0};

	chain_init(chain);
	if (regions) {
		const char *feather = strstr(regions, "&feather=");
		char *shapes = g_strndup(regions + strlen("&regions="),
		                         strcspn(regions + strlen("&regions="), "&"));

		if (chain_set_regions(chain, shapes, &problem))
			die(problem.detail);
		chain->regions.feather =
		    feather ? (uint32_t)atoi(feather + strlen("&feather=")) : 0;
		chain->regions.invert = strstr(regions, "&invert=1") != NULL;
		*regions = '\0';
		g_free(shapes);
	}
	if (chain_parse(chain, filters, &problem) || chain_check(chain, &problem))
		die(problem.detail);
	g_free(filters);
}

void harness_await(struct harness *h, struct plan *plan, enum tile_form form)
{
	enum program_state state;
	enum kernel lacks;

	while ((state = plan_resolve(plan, h->programs, form, &lacks)) == PROGRAM_PENDING)
		programs_wait(h->programs);
	if (state != PROGRAM_READY)
		die("a program cannot be compiled");
}

struct plan *harness_plan(struct harness *h, const struct chain *chain, const struct image *image,
                          enum tile_form form)
{
	struct plan *plan;

	if (plan_new(h->programs, chain, image, NULL, NULL, &plan))
		die("there is no plan");
	harness_await(h, plan, form);
	return plan;
}

bool harness_await_notice(const struct harness *h)
{
	struct pollfd event = {.fd = h->notice, .events = POLLIN};
	uint64_t count;

	return poll(&event, 1, NOTICE_MS) == 1 &&
	       read(h->notice, &count, sizeof count) == sizeof count;
}

enum error harness_run(struct harness *h, struct lane *lane, const struct plan *plan,
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
	told = !lane_notifies(lane) || harness_await_notice(h);
	lane_wait(lane);
	while (!lane_finished(lane))
		;
	lane_finish(lane, done);
	return done->error || told ? done->error : ERR_INTERNAL;
}

/* Returns the columns, or rows (1), of the image for a tile, without the halo. */
static struct extent read_of(const struct plan *plan, const struct tile *tile, int direction)
{
	return geometry_source(&plan->geometry, direction, direction ? tile->y0 : tile->x0,
	                       direction ? tile->height : tile->width);
}

/* Makes a tile of rows [y0, y0 + height) of the result, behind a guard in both arenas. */
static struct tile make_tile(const struct plan *plan, uint32_t first, uint32_t height)
{
	size_t pixel = image_pixel_size(&plan->image), halo = plan->halo_x * pixel;
	struct tile tile = {
	    .index = first,
	    .width = plan->width,
	    .height = height,
	    .out_pitch = (uint32_t)row_pitch(plan->width * pixel),
	    .out = GUARD,
	};

	tile.x0 = plan->geometry.crop[0];
	tile.y0 = plan->geometry.crop[1] + first;
	tile.in_pitch = (uint32_t)row_pitch(halo + read_of(plan, &tile, 0).count * pixel + halo);
	tile.in = GUARD + row_pitch(halo) + (uint64_t)plan->halo_y * tile.in_pitch;
	return tile;
}

void harness_pad(const struct plan *plan, const void *image, int x, int y, void *to)
{
	int width = (int)plan->image.width, height = (int)plan->image.height;
	size_t pixel = image_pixel_size(&plan->image);
	bool inside = x >= 0 && y >= 0 && x < width && y < height;

	if (!inside && plan->chain.border == BORDER_CONSTANT) {
		for (uint32_t b = 0; b < plan->image.bands; b++)
			image_put_sample(to, b, plan->image.type,
			                 (double)plan->border.border.pixel[b]);
		return;
	}
	x = border_map(x, width, (int)plan->chain.border);
	y = border_map(y, height, (int)plan->chain.border);
	memcpy(to, (const char *)image + ((size_t)y * plan->image.width + (size_t)x) * pixel,
	       pixel);
}

/* Returns bytes of the arenas that a tile takes, with its guards on both sides. */
static uint64_t in_size(const struct plan *plan, const struct tile *tile)
{
	return (uint64_t)tile->in_pitch * (read_of(plan, tile, 1).count + 2 * plan->halo_y) +
	       2 * GUARD;
}

static uint64_t out_size(const struct tile *tile)
{
	return (uint64_t)tile->out_pitch * tile->height + 2 * GUARD;
}

static void fill_tile(struct harness *h, const struct plan *plan, const struct tile *tile,
                      const char *image)
{
	size_t pixel = image_pixel_size(&plan->image);
	char *arena = h->memory.in;
	const struct extent across = read_of(plan, tile, 0), down = read_of(plan, tile, 1);
	int rx = (int)plan->halo_x, ry = (int)plan->halo_y;
	uint64_t before =
	    GUARD + row_pitch(plan->halo_x * pixel) + (uint64_t)plan->halo_y * tile->in_pitch;

	memset((char *)h->memory.out + tile->out - GUARD, POISON_OUT, out_size(tile));
	memset(arena + tile->in - before, POISON_IN, in_size(plan, tile));
	for (int y = -ry; y < (int)down.count + ry; y++)
		for (int x = -rx; x < (int)across.count + rx; x++)
			harness_pad(plan, image, across.first + x, down.first + y,
			            arena + (int64_t)tile->in + (int64_t)y * tile->in_pitch +
			                (int64_t)x * (int64_t)pixel);
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
	const size_t row = tile->width * image_pixel_size(&plan->image);
	const char *first = (const char *)h->memory.out + tile->out;
	const char *end = first + (size_t)(tile->height - 1) * tile->out_pitch + row;
	const struct rows rows = {first, row, tile->out_pitch, tile->height};

	return (!ahead || all_poison(first - GUARD, GUARD, POISON_OUT)) &&
	       (!behind || all_poison(end, GUARD, POISON_OUT)) &&
	       (!direct || poison_around(&rows, first, end, POISON_OUT));
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

/* Tells whether some step works on points, or resizes: columns for tests are too narrow for that.
 */
static bool on_lattice(const struct plan *plan)
{
	if (plan->geometry.resizes)
		return true;
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
		e = harness_run(h, lane, plan, &column, 1, done);
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
		fill_tile(h, plan, &tiles[i], in);
	if (count == 1 && tiles->height % 2 && !on_lattice(plan))
		outcome->error = run_columns(h, h->lane[mode], plan, tiles, done);
	else
		outcome->error = harness_run(h, h->lane[mode], plan, tiles, count, done);
	if (outcome->error) {
		outcome->code = done->cl_error;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		outcome->guard_broken |= !guards_intact(
		    h, plan, &tiles[i], i == 0 || !close_together(tiles),
		    i + 1 == count || !close_together(tiles), mode == LANE_ZERO_COPY && h->pool);
		take_result(h, plan, &tiles[i], out);
	}
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
		tile->in = before->in + row_pitch(in_size(plan, before)) + gap;
		tile->out = before->out + row_pitch(out_size(before)) + gap;
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
