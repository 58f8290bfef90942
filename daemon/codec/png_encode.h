/* Encoding PNG: from the answer's rows to the answer's bytes. */
#ifndef CODEC_PNG_ENCODE_H
#define CODEC_PNG_ENCODE_H

#include "base/error.h"
#include "codec/output_format.h"

struct file_metadata;

/* Takes rows one after another and writes them to an empty file, with this metadata (NULL: none):
 * several pages as frames, each of them whole, with its delays. Rows that end too early are no
 * error here. Allocates nothing a row. */
enum error png_encode(const struct output_format *output, const struct file_metadata *metadata,
                      answer_row *row, void *context, int file, struct problem *problem) MUST_CHECK;

#endif
