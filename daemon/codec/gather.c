/* Runs in the encoding thread, in place of the encoder. No rows are kept: memory holds the counts
 * alone, at most 2 MiB. */
#include "codec/gather.h"

#include <stdlib.h>

#include "common/file.h"

static bool is_luma(const struct message_job *job)
{
	return job->gather_channels == CHANNELS_LUMA;
}

/* Counts a strip's rows, which are there. */
static void count_strip(const struct tiles *tiles, const struct message_job *job, uint32_t first,
                        uint32_t end, uint64_t *counts)
{
	const struct tiling *t = &tiles->tiling;

	for (uint32_t row = first; row < end; row++)
		counts_add(counts, &t->image, is_luma(job), tiles_out_row(tiles, row), t->width);
}

/* Counts all rows; false if the job was stopped. */
static bool count_all(struct tiles *tiles, const struct message_job *job, uint64_t *counts)
{
	const struct tiling *t = &tiles->tiling;

	for (uint32_t row = 0; row < t->height;) {
		const uint32_t left = t->height - row,
		               end = row + (left < t->rows ? left : t->rows);

		if (!tiles_await(tiles, row / t->rows))
			return false;
		count_strip(tiles, job, row, end, counts);
		tiles_free_above(tiles, end);
		row = end;
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
	case GATHER_NONE:
	case GATHERS:
		break;
	}
}

enum error gather_run(struct tiles *tiles, const struct message_job *job, int file,
                      struct problem *problem)
{
	const struct image *image = &tiles->tiling.image;
	const enum pixel_type type = (enum pixel_type)image->type;
	const uint32_t rows = gather_rows(image, is_luma(job)), n = counts_of(type);
	const uint32_t entries = gather_entries((enum gather)job->gather, type);
	uint64_t *counts = calloc((size_t)rows * n, sizeof *counts);
	double numbers[GATHER_NUMBERS_MAX];
	bool there;

	if (!counts)
		return problem_set(problem, ERR_MEMORY, "no memory to count the image's values");
	there = count_all(tiles, job, counts);
	for (uint32_t i = 0; there && i < rows; i++)
		make_numbers((enum gather)job->gather, counts + (size_t)i * n, n,
		             numbers + (size_t)i * entries, entries);
	free(counts);
	if (there && !file_write(file, numbers, (size_t)rows * entries * sizeof *numbers, 0))
		return problem_set(problem, ERR_IO, "cannot write what was counted");
	return ERR_OK;
}
