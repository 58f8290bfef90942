/* Writing PNM, bare pixels and BMP without libvips. */
#ifndef CODEC_ROW_WRITER_H
#define CODEC_ROW_WRITER_H

#include "base/error.h"
#include "codec/file_metadata.h"
#include "codec/output_format.h"

/* Writes rows to an empty file as FORMAT_PNM or FORMAT_RAW, which have no metadata. Rows that end
 * too early are no error here. */
enum error pnm_write(const struct output_format *output, const struct file_metadata *metadata,
                     answer_row *row, void *context, int file, struct problem *problem) MUST_CHECK;

/* Writes rows as FORMAT_BMP, with the resolution and the profile, if it fits the pixels, of the
 * metadata (NULL: none). Rows that end too early are no error here. */
enum error bmp_write(const struct output_format *output, const struct file_metadata *metadata,
                     answer_row *row, void *context, int file, struct problem *problem) MUST_CHECK;

#endif
