/* Encoding PNG without libvips: from the answer's rows to the answer's bytes. A small image is
 * deflated as a whole, in half of the time. */
#ifndef CODEC_PNG_ENCODE_H
#define CODEC_PNG_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/output_format.h"
#include "common/error.h"

struct file_metadata;

/* True if png_encode() writes such an answer with this metadata (NULL: none). Larger images are
 * better encoded row by row, by libvips. */
bool png_encodes(const struct output_format *output, const struct file_metadata *metadata);

/* Takes rows one after another and writes them to an empty file. Rows that end too early are no
 * error here. Allocates nothing a row. */
enum error png_encode(const struct output_format *output, const struct file_metadata *metadata,
                      answer_row *row, void *context, int file, struct problem *problem) MUST_CHECK;

#endif
