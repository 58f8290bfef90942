/* Writes rows in large pieces, each at its final place when it arrives, also from bottom to top.
 * Runs in the job's encoding thread. */
#include "codec/plain.h"

#include <stdlib.h>

#include "common/file.h"

struct plain {
	const struct plain_layout *layout;
	answer_row *row;
	void *context;
	int file;
	uint32_t height;
	uint8_t *rows; /* rows not written yet */
	uint32_t rows_max, first, count;
};

static enum error flush(struct plain *p)
{
	const struct plain_layout *l = p->layout;
	uint32_t place = l->bottom_up ? p->height - p->first - p->count : p->first;

	p->first += p->count;
	return file_write(p->file, p->rows, p->count * l->row_size,
	                  l->start + (uint64_t)place * l->row_size)
	           ? ERR_OK
	           : ERR_IO;
}

/* Takes as many of the next rows as fit; false if they end. */
static bool take_rows(struct plain *p)
{
	const struct plain_layout *l = p->layout;
	uint32_t left = p->height - p->first;

	p->count = left < p->rows_max ? left : p->rows_max;
	for (uint32_t i = 0; i < p->count; i++) {
		uint32_t place = l->bottom_up ? p->count - 1 - i : i;
		const uint8_t *row = p->row(p->context, p->first + i);

		if (!row)
			return false;
		l->put(l->output, p->rows + place * l->row_size, row);
	}
	return true;
}

enum error plain_failed(struct problem *problem)
{
	return problem_set(problem, ERR_IO, "cannot write the answer");
}

enum error plain_write(const struct plain_layout *layout, answer_row *row, void *context, int file,
                       struct problem *problem)
{
	struct plain p = {.layout = layout,
	                  .row = row,
	                  .context = context,
	                  .file = file,
	                  .height = output_rows(layout->output),
	                  .rows_max = (uint32_t)((256 << 10) / layout->row_size) + 1};
	enum error e = ERR_OK;

	p.rows = calloc(p.rows_max, layout->row_size);
	if (!p.rows)
		return problem_set(problem, ERR_MEMORY, "no memory to write the answer");
	while (!e && p.first < p.height && take_rows(&p))
		e = flush(&p);
	free(p.rows);
	return e ? plain_failed(problem) : ERR_OK;
}
