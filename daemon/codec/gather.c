/* Runs in the encoding thread in place of the encoder. Memory holds counts, of one row of tiles at
 * a time (8 MiB at most), and for CLAHE some rows; or two bits for each pixel of one page at a
 * time. */
#include "codec/tiles.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/file.h"
#include "border.h"
#include "filters/edges.h"
#include "filters/gather.h"
#include "grid.h"

/* The state of gathering from a page's rows. */
struct gatherer {
	struct tiles *tiles;
	uint32_t page;
	int file;
	struct problem *problem;
	struct image image;     /* the result */
	uint32_t numbers, rows; /* rows of so many numbers are gathered */
	/* A grid of `across` tiles each way of this size in pixels: CLAHE's, or a single one. */
	uint32_t across, width, height;
	uint32_t *counts; /* a row of tiles, tile after tile: those of each row of numbers */
	uint32_t below;   /* so many rows of tiles lie below the image */
	uint8_t *kept;    /* these mirror the last ones of the image, which has one more here */
	size_t pitch;
	struct edges edges;
};

/* Writes some of the page's numbers, from the first on. */
static enum error write_numbers(const struct gatherer *g, uint64_t first, const void *numbers,
                                size_t size)
{
	const uint64_t page = (uint64_t)g->page * g->numbers * g->rows;

	return file_write(g->file, numbers, size, (page + first) * sizeof(double))
	           ? ERR_OK
	           : problem_set(g->problem, ERR_IO, "cannot write what was counted");
}

/* Writes the numbers of a row of tiles, and forgets its counts. */
static enum error write_tiles(struct gatherer *g, uint32_t y)
{
	const struct gathering *gathering = &g->tiles->job->gathering;
	const uint32_t n = counts_of(g->image.type);
	const uint32_t of_tile = g->numbers / (g->across * g->across);
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < g->across * g->rows; i++) {
		const uint32_t x = i / g->rows, row = i % g->rows;
		uint32_t *counts = g->counts + (size_t)i * n;
		union {
			double numbers[GATHER_ENTRIES_MAX];
			uint64_t bits[2 * COUNTS_MAX / 64];
		} made;

		if (gathering->kind == GATHER_THRESHOLD)
			made.numbers[0] = counts_threshold(counts, n);
		else if (gathering->kind == GATHER_TABLE)
			counts_table(counts, n, made.numbers, g->numbers);
		else
			counts_clahe(counts, n, gathering->clip, made.bits);
		e = write_numbers(
		    g, (uint64_t)row * g->numbers + ((uint64_t)y * g->across + x) * of_tile, &made,
		    of_tile * sizeof(double));
	}
	memset(g->counts, 0, (size_t)g->across * g->rows * n * sizeof *g->counts);
	return e;
}

/* Counts rows of the image, or one below it, with the pixels of tiles that reach beyond its end.
 * Goes down in a tile before the next one, so that its counts stay in the cache. */
static enum error count_rows(struct gatherer *g, uint32_t y, uint32_t end, const uint8_t *pixels,
                             size_t pitch)
{
	const size_t pixel = image_pixel_size(&g->image);
	const size_t counts = (size_t)g->rows * counts_of(g->image.type);
	const uint32_t width = g->image.width, all = g->across * g->width;
	enum error e = ERR_OK;

	for (uint32_t next; !e && y < end; pixels += (next - y) * pitch, y = next) {
		next = MIN((y / g->height + 1) * g->height, end);
		for (uint32_t x = 0, to; x < all; x = to) {
			const int from = border_map((int)x, (int)width, BORDER_REFLECT101);

			to = x < width ? MIN((x / g->width + 1) * g->width, width) : x + 1;
			for (uint32_t i = 0; i < next - y; i++)
				counts_add(g->counts + x / g->width * counts, &g->image,
				           g->tiles->job->gathering.luma,
				           pixels + i * pitch + (size_t)from * pixel, to - x);
		}
		if (next % g->height == 0)
			e = write_tiles(g, y / g->height);
	}
	return e;
}

/* Adds all rows of the page. Returns ERR_OK also if the job was stopped. */
static enum error add_rows(struct gatherer *g)
{
	struct tiles *tiles = g->tiles;
	const struct tiling *t = &tiles->tiling;
	const uint32_t above = g->page * t->height, channels = tiles->job->gather_channels;
	/* One that the filter changes shows the edges. */
	const uint32_t band = channels == CHANNELS_GREEN ? 1 : channels == CHANNELS_BLUE ? 2 : 0;
	enum error e = ERR_OK;

	for (uint32_t row = 0, end; !e && row < t->height; row = end) {
		end = MIN(row + t->rows, t->height);
		if (!verify_await(tiles, tiling_strip(t, above + row)))
			return ERR_OK;
		if (g->counts)
			e = count_rows(g, row, end, tiles_out_row(tiles, above + row),
			               t->out_pitch);
		for (uint32_t y = row; y < end; y++) {
			const void *pixels = tiles_out_row(tiles, above + y);

			if (g->below)
				memcpy(g->kept + y % (g->below + 1) * g->pitch, pixels, g->pitch);
			if (!g->counts)
				edges_set_row(&g->edges, y, &t->image, band, pixels);
		}
		tiles_free_above(tiles, above + end);
	}
	return e;
}

static enum error gather_counts(struct gatherer *g)
{
	const struct gathering *gathering = &g->tiles->job->gathering;
	const int width = (int)g->image.width, height = (int)g->image.height;
	enum error e;

	g->across = gathering->kind == GATHER_TILES ? gathering->tiles : 1;
	g->width = (uint32_t)grid_tile((int)g->across, width, height);
	g->height = (uint32_t)grid_tile((int)g->across, height, width);
	g->below = g->across * g->height - g->image.height;
	g->pitch = image_pixel_size(&g->image) * g->image.width;
	g->counts =
	    calloc((size_t)g->across * g->rows * counts_of(g->image.type), sizeof *g->counts);
	g->kept = malloc((g->below + 1) * g->pitch);
	e = g->counts && g->kept ? add_rows(g)
	                         : no_memory(g->problem, "to count the image's values");
	for (uint32_t i = 0; !e && i < g->below && !tiles_stopped(g->tiles); i++) {
		const int y = height + (int)i, from = border_map(y, height, BORDER_REFLECT101);

		e = count_rows(g, (uint32_t)y, (uint32_t)y + 1,
		               g->kept + (size_t)from % (g->below + 1) * g->pitch, g->pitch);
	}
	free(g->counts);
	free(g->kept);
	return e;
}

static enum error gather_edges(struct gatherer *g)
{
	enum error e = edges_init(&g->edges, g->image.width, g->image.height);

	if (e)
		problem_set(g->problem, e, "no memory for the image's edges");
	else
		e = add_rows(g);
	if (!e && !tiles_stopped(g->tiles)) {
		edges_grow(&g->edges);
		e = write_numbers(g, 0, g->edges.sure,
		                  (size_t)g->numbers * g->rows * sizeof *g->edges.sure);
	}
	edges_fini(&g->edges);
	return e;
}

/* The image whose values are counted. */
static struct image result_of(const struct tiling *t)
{
	struct image image = t->image;

	image.width = t->width;
	image.height = t->height;
	return image;
}

enum error gather_check(const struct message_job *job, const struct tiling *tiling,
                        struct problem *problem)
{
	const struct image image = result_of(tiling);
	const enum gather kind = (enum gather)job->gathering.kind;
	const uint32_t tiles = job->gathering.tiles;
	uint64_t words, size, held;
	uint32_t width, height, most = 0;

	gather_size(&job->gathering, &image, &width, &height);
	words = (uint64_t)width * height;
	size = 2 * words * tiling->pages * sizeof(uint64_t);
	if (kind == GATHER_EDGES) {
		if (words * tiling->pages <= GATHERED_MAX && size <= job->buffered_size_max)
			return ERR_OK;
		return problem_set(
		    problem, ERR_TOO_MANY_PIXELS,
		    "the image is %ux%u (pages: %u), and for canny two bits of each "
		    "pixel are kept, which takes %" PRIu64 " bytes; the limit is %" PRIu64,
		    tiling->width, tiling->height, tiling->pages, size,
		    words * tiling->pages > GATHERED_MAX ? 2 * GATHERED_MAX * sizeof(uint64_t)
		                                         : job->buffered_size_max);
	}
	if (kind && (uint64_t)image.width * image.height > PIXELS_COUNTED_MAX)
		return problem_set(problem, ERR_TOO_MANY_PIXELS,
		                   "the image is %ux%u, and its values must be counted first; "
		                   "expected at most %" PRIu32 " pixels",
		                   image.width, image.height, PIXELS_COUNTED_MAX);
	/* A device has a page's tables of tiles as 16-bit numbers. */
	held = words * (kind == GATHER_TILES ? MAX(tiling->pages, 8) : tiling->pages);
	if (held <= GATHERED_MAX)
		return ERR_OK;
	while (kind == GATHER_TILES &&
	       held / tiles / tiles * (most + 1) * (most + 1) <= GATHERED_MAX)
		most++;
	if (most)
		return filter_refuse(problem, "tiles", "",
		                     "expected at most %u for this image (pages: %u, colours: %u, "
		                     "entries of a table: %u)",
		                     most, tiling->pages, height, counts_of(image.type));
	/* Only very many pages have too many numbers. */
	return problem_set(problem, ERR_TOO_MANY_PIXELS,
	                   "the image has %u pages, and %" PRIu64
	                   " numbers of each are kept first; the limit is %" PRIu64 " pages",
	                   tiling->pages, words, GATHERED_MAX / words);
}

enum error gather_run(struct tiles *tiles, int file, struct problem *problem)
{
	enum error e = ERR_OK;

	for (uint32_t page = 0; !e && page < tiles->tiling.pages && !tiles_stopped(tiles); page++) {
		struct gatherer g = {.tiles = tiles,
		                     .page = page,
		                     .file = file,
		                     .problem = problem,
		                     .image = result_of(&tiles->tiling)};

		gather_size(&tiles->job->gathering, &g.image, &g.numbers, &g.rows);
		e = tiles->job->gathering.kind == GATHER_EDGES ? gather_edges(&g)
		                                               : gather_counts(&g);
	}
	return e;
}
