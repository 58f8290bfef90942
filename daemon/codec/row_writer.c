#include "codec/row_writer.h"

#include <stdlib.h>

#include "base/file.h"

enum error row_writer_run(const struct row_layout *l, const void *head, answer_row *next,
                          void *context, int file, struct problem *problem)
{
	const uint32_t height = output_rows(l->output);
	const uint32_t rows_max = (uint32_t)((256 << 10) / l->row_size) + 1;
	uint8_t *rows = calloc(rows_max, l->row_size);
	bool written = file_write(file, head, l->start, 0), ended = false;

	if (!rows)
		return problem_set(problem, ERR_MEMORY, "no memory to write the answer");
	for (uint32_t first = 0, count; written && !ended && first < height; first += count) {
		uint64_t place = first;

		count = height - first < rows_max ? height - first : rows_max;
		for (uint32_t i = 0; !ended && i < count; i++) {
			const uint8_t *row = next(context, first + i);
			uint32_t at = l->bottom_up ? count - 1 - i : i;

			ended = !row;
			if (row)
				l->put(l->output, rows + at * l->row_size, row);
		}
		if (l->bottom_up)
			place = height - first - count;
		if (!ended)
			written = file_write(file, rows, count * l->row_size,
			                     l->start + place * l->row_size);
	}
	free(rows);
	return written ? ERR_OK : problem_set(problem, ERR_IO, "cannot write the answer");
}
