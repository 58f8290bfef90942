/* Runs in the encoding thread in place of the encoder. No rows are kept: memory holds only counts,
 * at most 2 MiB, or two bits for each pixel of one page at a time. */
#include "codec/tiles.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

#include "base/file.h"
#include "filters/edges.h"
#include "filters/gather.h"

static bool is_luma(const struct message_job *job)
{
	return job->gather_channels == CHANNELS_LUMA;
}

/* The state of gathering from a page's rows. */
struct gatherer {
	struct tiles *tiles;
	uint32_t page;
	int file;
	struct problem *problem;
	uint64_t *counts;
	struct edges edges;
};

/* Adds all rows of the page. Returns false if the job was stopped. */
static bool add_rows(struct gatherer *g)
{
	struct tiles *tiles = g->tiles;
	const struct tiling *t = &tiles->tiling;
	const uint32_t above = g->page * t->height, channels = tiles->job->gather_channels;
	/* One that the filter changes shows the edges. */
	const uint32_t band = channels == CHANNELS_GREEN ? 1 : channels == CHANNELS_BLUE ? 2 : 0;

	for (uint32_t row = 0; row < t->height;) {
		const uint32_t end = MIN(row + t->rows, t->height);

		if (!verify_await(tiles, tiling_strip(t, above + row)))
			return false;
		for (; row < end; row++) {
			const void *pixels = tiles_out_row(tiles, above + row);

			if (g->counts)
				counts_add(g->counts, &t->image, is_luma(tiles->job), pixels,
				           t->width);
			else
				edges_set_row(&g->edges, row, &t->image, band, pixels);
		}
		tiles_free_above(tiles, above + end);
	}
	return true;
}

/* Writes as many bytes as each page has. */
static enum error write_page(const struct gatherer *g, const void *numbers, size_t size)
{
	return file_write(g->file, numbers, size, (uint64_t)g->page * size)
	           ? ERR_OK
	           : problem_set(g->problem, ERR_IO, "cannot write what was counted");
}

static enum error gather_counts(struct gatherer *g)
{
	const struct message_job *job = g->tiles->job;
	const struct image *image = &g->tiles->tiling.image;
	const enum pixel_type type = (enum pixel_type)image->type;
	const enum gather gather = (enum gather)job->gather;
	const uint32_t rows = gather_rows(image, is_luma(job)), n = counts_of(type);
	const uint32_t entries = gather_entries(gather, type);
	double numbers[GATHER_NUMBERS_MAX];
	bool there;

	g->counts = calloc((size_t)rows * n, sizeof *g->counts);
	if (!g->counts)
		return problem_set(g->problem, ERR_MEMORY, "no memory to count the image's values");
	there = add_rows(g);
	for (uint32_t i = 0; there && i < rows; i++) {
		const uint64_t *counts = g->counts + (size_t)i * n;

		if (gather == GATHER_THRESHOLD)
			numbers[i] = counts_threshold(counts, n);
		else
			counts_table(counts, n, numbers + (size_t)i * entries, entries);
	}
	free(g->counts);
	return there ? write_page(g, numbers, (size_t)rows * entries * sizeof *numbers) : ERR_OK;
}

static enum error gather_edges(struct gatherer *g)
{
	const struct tiling *t = &g->tiles->tiling;
	const size_t size = (size_t)edges_words(t->width, t->height) * sizeof *g->edges.sure;
	enum error e = ERR_OK;

	if (edges_init(&g->edges, t->width, t->height)) {
		e = problem_set(g->problem, ERR_MEMORY, "no memory for the image's edges");
	} else if (add_rows(g)) {
		edges_grow(&g->edges);
		e = write_page(g, g->edges.sure, size);
	}
	edges_fini(&g->edges);
	return e;
}

enum error gather_check(const struct message_job *job, const struct tiling *tiling,
                        struct problem *problem)
{
	const uint64_t words = tiling->pages * edges_words(tiling->width, tiling->height);
	const uint64_t size = 2 * words * sizeof(uint64_t);
	uint32_t numbers;

	if (job->gather == GATHER_NONE)
		return ERR_OK;
	if (job->gather == GATHER_EDGES) {
		if (words <= EDGES_WORDS_MAX && size <= job->buffered_size_max)
			return ERR_OK;
		return problem_set(problem, ERR_TOO_MANY_PIXELS,
		                   "the image is %ux%u (pages: %u), and for canny two bits of each "
		                   "pixel are kept, which takes %" PRIu64
		                   " bytes; the limit is %" PRIu64,
		                   tiling->width, tiling->height, tiling->pages, size,
		                   words > EDGES_WORDS_MAX ? 2 * EDGES_WORDS_MAX * sizeof(uint64_t)
		                                           : job->buffered_size_max);
	}
	/* Only very many pages have too many numbers. */
	numbers = gather_rows(&tiling->image, is_luma(job)) *
	          gather_entries((enum gather)job->gather, tiling->image.type);
	if (tiling->pages <= EDGES_WORDS_MAX / numbers)
		return ERR_OK;
	return problem_set(problem, ERR_TOO_MANY_PIXELS,
	                   "the image has %u pages, and %u numbers of each are kept first; the "
	                   "limit is %u pages",
	                   tiling->pages, numbers, EDGES_WORDS_MAX / numbers);
}

enum error gather_run(struct tiles *tiles, int file, struct problem *problem)
{
	enum error e = ERR_OK;

	for (uint32_t page = 0; !e && page < tiles->tiling.pages && !tiles_stopped(tiles); page++) {
		struct gatherer g = {
		    .tiles = tiles, .page = page, .file = file, .problem = problem};

		e = tiles->job->gather == GATHER_EDGES ? gather_edges(&g) : gather_counts(&g);
	}
	return e;
}
