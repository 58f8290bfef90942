/* Encoding still WebP pictures without libvips, which has no way to keep the colour of transparent
 * pixels: lossless answers have it. */
#ifndef CODEC_WEBP_ENCODE_H
#define CODEC_WEBP_ENCODE_H

#include "base/error.h"
#include "codec/output_format.h"

struct file_metadata;

/* Takes rows one after another and writes them to an empty file, with the metadata (NULL: none).
 * The whole image is held, in 4 bytes a pixel and what libwebp needs. Rows that end too early are
 * no error here. */
enum error webp_encode(const struct output_format *output, const struct file_metadata *metadata,
                       answer_row *row, void *context, int file,
                       struct problem *problem) MUST_CHECK;

#endif
