/* Writing files whose rows have places that are known beforehand: in large pieces, each at its
 * final place when it arrives, also from bottom to top. */
#ifndef CODEC_ROW_WRITER_H
#define CODEC_ROW_WRITER_H

#include "base/error.h"
#include "codec/row.h"

/* The rows of a file. */
struct row_layout {
	const struct output_format *output;
	uint64_t start;  /* bytes before the rows */
	size_t row_size; /* bytes */
	bool bottom_up;  /* the last row comes first */
	/* Makes a row of the file from one of the answer; the file's was zero, or another row. */
	void (*put)(const struct output_format *output, uint8_t *to, const uint8_t *row);
};

/* Writes the head of a file and its rows. Rows that end too early are no error. */
enum error row_writer_run(const struct row_layout *layout, const void *head, answer_row *row,
                          void *context, int file, struct problem *problem) MUST_CHECK;

#endif
