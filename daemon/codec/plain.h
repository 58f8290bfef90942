/* Writing files whose rows have places that are known beforehand. */
#ifndef CODEC_PLAIN_H
#define CODEC_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/output_format.h"
#include "common/error.h"

struct plain_layout {
	const struct output_format *output;
	uint64_t start;  /* bytes before the rows */
	size_t row_size; /* bytes */
	bool bottom_up;  /* the last row comes first */
	/* Makes a row of the file from one of the answer; the file's was zero, or another row. */
	void (*put)(const struct output_format *output, uint8_t *to, const uint8_t *row);
};

/* Takes rows one after another and writes them to a file. Rows that end too early are no error
 * here. */
enum error plain_write(const struct plain_layout *layout, answer_row *row, void *context, int file,
                       struct problem *problem) MUST_CHECK;

/* Reports that the file cannot be written. */
enum error plain_failed(struct problem *problem);

#endif
