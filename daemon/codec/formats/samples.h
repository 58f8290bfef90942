/* Samples of types other than the image's, for files that cannot hold these; samples in planes; and
 * files in which the position of each row is known in advance. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "codec/formats/row.h"

/* Copies samples, scaled to a narrower type's full scale, rounded to nearest and saturated. */
void samples_convert(void *to, enum pixel_type to_type, const void *from, enum pixel_type from_type,
                     size_t samples);

/* Makes pixels of blue, green, red and, if `bands` is 4, alpha from a row of bytes as a writer gets
 * it. The row has at most `bands` bands; grey becomes three colours. */
void samples_to_bgr(uint8_t *to, uint32_t bands, const struct output_format *output,
                    const uint8_t *row);

/* Splits a row of pixels, each of `planes` samples of `size` bytes (1, 2 or 4): the first samples
 * go to `to`, those of each further plane `pitch` bytes behind. Rows are aligned to their
 * samples. */
void samples_split(uint8_t *to, uint64_t pitch, const uint8_t *row, uint32_t planes, uint32_t width,
                   size_t size);

/* The reverse: puts a row of such pixels together. */
void samples_weave(uint8_t *row, const uint8_t *from, uint64_t pitch, uint32_t planes,
                   uint32_t width, size_t size);

/* The rows of a file. */
struct row_layout {
	uint64_t start;  /* bytes before the rows */
	size_t row_size; /* bytes */
	bool bottom_up;  /* the last row comes first */
	/* Makes a row of the file, which holds zeros or an earlier row, from one of the answer. */
	void (*put)(const struct output_format *output, uint8_t *to, const uint8_t *row);
};

/* Writes the head of an answer and its rows, in large pieces, each at its final place when it
 * arrives; rows may go from bottom to top. */
enum error samples_write(const struct answer *answer, const struct row_layout *layout,
                         const void *head, struct problem *problem) MUST_CHECK;
