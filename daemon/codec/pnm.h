/* Writing PNM and bare pixels. */
#ifndef CODEC_PNM_H
#define CODEC_PNM_H

#include "codec/output_format.h"
#include "common/error.h"

/* Takes rows one after another and writes them to an empty file as FORMAT_PNM or FORMAT_RAW. Rows
 * that end too early are no error here. */
enum error pnm_write(const struct output_format *output, answer_row *row, void *context, int file,
                     struct problem *problem) MUST_CHECK;

#endif
