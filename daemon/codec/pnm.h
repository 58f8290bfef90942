/* Writing PNM and bare pixels. */
#ifndef CODEC_PNM_H
#define CODEC_PNM_H

#include "codec/file_metadata.h"
#include "codec/output_format.h"
#include "common/error.h"

/* Writes rows to an empty file as FORMAT_PNM or FORMAT_RAW, which have no metadata. Rows that end
 * too early are no error here. */
enum error pnm_write(const struct output_format *output, const struct file_metadata *metadata,
                     answer_row *row, void *context, int file, struct problem *problem) MUST_CHECK;

#endif
