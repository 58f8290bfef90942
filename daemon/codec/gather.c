/* Runs in the encoding thread, in place of the encoder. No rows are kept: memory holds the counts
 * alone, at most 2 MiB, two bits of each pixel, or the points of a grid. */
#include "codec/gather.h"

#include <stdlib.h>

#include "common/edges.h"
#include "common/file.h"
#include "common/shrink.h"

static bool is_luma(const struct message_job *job)
{
	return job->gather_channels == CHANNELS_LUMA;
}

/* What becomes of a row. */
struct gatherer {
	const struct message_job *job;
	const struct tiling *tiling;
	uint64_t *counts;
	struct shrink *shrink;
	struct edges edges;
};

/* The band that shows the edges of these channels: one that is changed. */
static uint32_t edges_band(const struct message_job *job)
{
	switch ((enum channels)job->gather_channels) {
	case CHANNELS_GREEN:
		return 1;
	case CHANNELS_BLUE:
		return 2;
	case CHANNELS_ALL:
	case CHANNELS_COLOR:
	case CHANNELS_RED:
	case CHANNELS_LUMA:
	case CHANNELS_ALPHA:
	case CHANNELS_CHROMA:
	case CHANNELS:
		break;
	}
	return 0;
}

static void take_row(struct gatherer *g, uint32_t y, const void *pixels)
{
	const struct image *image = &g->tiling->image;

	if (g->counts)
		counts_add(g->counts, image, is_luma(g->job), pixels, g->tiling->width);
	else if (g->shrink)
		shrink_row(g->shrink, pixels);
	else
		edges_set_row(&g->edges, y, image, edges_band(g->job), pixels);
}

/* Takes all rows; false if the job was stopped. */
static bool take_all(struct tiles *tiles, struct gatherer *g)
{
	const struct tiling *t = g->tiling;

	for (uint32_t row = 0; row < t->height;) {
		const uint32_t left = t->height - row,
		               end = row + (left < t->rows ? left : t->rows);

		if (!tiles_await(tiles, row / t->rows))
			return false;
		for (; row < end; row++)
			take_row(g, row, tiles_out_row(tiles, row));
		tiles_free_above(tiles, end);
	}
	return true;
}

/* Makes one colour's numbers of its counts. */
static void make_numbers(enum gather gather, const uint64_t *counts, uint32_t n, double *numbers,
                         uint32_t entries)
{
	switch (gather) {
	case GATHER_THRESHOLD:
		*numbers = counts_threshold(counts, n);
		break;
	case GATHER_TABLE:
		counts_table(counts, n, numbers, entries);
		break;
	case GATHER_EDGES:
	case GATHER_GRID:
	case GATHER_NONE:
	case GATHERS:
		break;
	}
}

static enum error cannot_write(struct problem *problem)
{
	return problem_set(problem, ERR_IO, "cannot write what was counted");
}

static enum error gather_counts(struct tiles *tiles, struct gatherer *g, int file,
                                struct problem *problem)
{
	const struct image *image = &g->tiling->image;
	const enum pixel_type type = (enum pixel_type)image->type;
	const enum gather gather = (enum gather)g->job->gather;
	const uint32_t rows = gather_rows(image, is_luma(g->job)), n = counts_of(type);
	const uint32_t entries = gather_entries(gather, type);
	double numbers[GATHER_NUMBERS_MAX];
	bool there;

	g->counts = calloc((size_t)rows * n, sizeof *g->counts);
	if (!g->counts)
		return problem_set(problem, ERR_MEMORY, "no memory to count the image's values");
	there = take_all(tiles, g);
	for (uint32_t i = 0; there && i < rows; i++)
		make_numbers(gather, g->counts + (size_t)i * n, n, numbers + (size_t)i * entries,
		             entries);
	free(g->counts);
	if (there && !file_write(file, numbers, (size_t)rows * entries * sizeof *numbers, 0))
		return cannot_write(problem);
	return ERR_OK;
}

static enum error gather_edges(struct tiles *tiles, struct gatherer *g, int file,
                               struct problem *problem)
{
	const struct tiling *t = g->tiling;
	const size_t size = (size_t)edges_words(t->width, t->height) * sizeof *g->edges.sure;
	enum error e = ERR_OK;

	if (edges_init(&g->edges, t->width, t->height)) {
		e = problem_set(problem, ERR_MEMORY, "no memory for the image's edges");
	} else if (take_all(tiles, g)) {
		edges_grow(&g->edges);
		if (!file_write(file, g->edges.sure, size, 0))
			e = cannot_write(problem);
	}
	edges_fini(&g->edges);
	return e;
}

/* The run's result. */
static struct image result_of(const struct tiling *tiling)
{
	struct image image = tiling->image;

	image.width = tiling->width;
	image.height = tiling->height;
	return image;
}

static enum error gather_grid(struct tiles *tiles, struct gatherer *g, enum border border,
                              const double border_pixel[BANDS_MAX], int file,
                              struct problem *problem)
{
	const struct image image = result_of(g->tiling);
	const double *sigma = g->job->gather_sigma;
	const size_t words = (size_t)grid_words(sigma, image.width, image.height, image.bands);
	const enum shrink_form form = shrink_form(&image, (enum channels)g->job->gather_channels);
	double *points = malloc(words * sizeof *points);
	enum error e = shrink_new(sigma, &image, form, border, border_pixel, &g->shrink);

	if (e || !points) {
		e = problem_set(problem, ERR_MEMORY, "no memory for a small form of the image");
	} else if (take_all(tiles, g)) {
		shrink_end(g->shrink, points);
		if (!file_write(file, points, words * sizeof *points, 0))
			e = cannot_write(problem);
	}
	shrink_free(&g->shrink);
	free(points);
	return e;
}

bool gather_grid_fits(const double sigma[GRID_AXES], const struct image *image,
                      uint64_t buffered_size_max)
{
	return grid_words(sigma, image->width, image->height, image->bands) <= GRID_WORDS_MAX &&
	       shrink_size(sigma, image) <= buffered_size_max;
}

/* Likewise for a grid. */
static enum error check_grid(const struct message_job *job, const struct tiling *tiling,
                             struct problem *problem)
{
	const struct image image = result_of(tiling);
	const double *sigma = job->gather_sigma;
	const uint64_t words = grid_words(sigma, image.width, image.height, image.bands);
	const uint64_t size = shrink_size(sigma, &image);

	if (gather_grid_fits(sigma, &image, job->buffered_size_max))
		return ERR_OK;
	return problem_set(
	    problem, ERR_TOO_MANY_PIXELS,
	    "the image is %ux%u, and for a gaussian of sigma %g across and %g down a small form of "
	    "it is kept, which takes %llu bytes; the limit is %llu",
	    image.width, image.height, sigma[GRID_X], sigma[GRID_Y],
	    (unsigned long long)(words > GRID_WORDS_MAX ? words * sizeof(double) : size),
	    (unsigned long long)(words > GRID_WORDS_MAX ? GRID_WORDS_MAX * sizeof(double)
	                                                : job->buffered_size_max));
}

enum error gather_check(const struct message_job *job, const struct tiling *tiling,
                        struct problem *problem)
{
	const uint64_t words = edges_words(tiling->width, tiling->height);
	const uint64_t size = 2 * words * sizeof(uint64_t);

	if (job->gather == GATHER_GRID)
		return check_grid(job, tiling, problem);
	if (job->gather != GATHER_EDGES ||
	    (words <= EDGES_WORDS_MAX && size <= job->buffered_size_max))
		return ERR_OK;
	return problem_set(problem, ERR_TOO_MANY_PIXELS,
	                   "the image is %ux%u, and for canny two bits of each pixel are kept, "
	                   "which takes %llu bytes; the limit is %llu",
	                   tiling->width, tiling->height, (unsigned long long)size,
	                   (unsigned long long)(words > EDGES_WORDS_MAX
	                                            ? 2 * EDGES_WORDS_MAX * sizeof(uint64_t)
	                                            : job->buffered_size_max));
}

enum error gather_run(struct tiles *tiles, const struct message_job *job, enum border border,
                      const double border_pixel[BANDS_MAX], int file, struct problem *problem)
{
	struct gatherer g = {.job = job, .tiling = &tiles->tiling};

	if (job->gather == GATHER_GRID)
		return gather_grid(tiles, &g, border, border_pixel, file, problem);
	return job->gather == GATHER_EDGES ? gather_edges(tiles, &g, file, problem)
	                                   : gather_counts(tiles, &g, file, problem);
}
