/* Writing PNM and bare pixels. */
#ifndef CODEC_PNM_H
#define CODEC_PNM_H

#include "codec/output_format.h"
#include "common/error.h"

/* Gives a row of the answer, valid until the next call; NULL: there are no more. */
typedef const uint8_t *pnm_row(void *context, uint32_t y);

/* Writes rows, taken one after another, to an empty file as FORMAT_PNM or FORMAT_RAW. That the rows
 * end too early is no error of this. */
enum error pnm_write(const struct output_format *output, pnm_row *row, void *context, int file,
                     struct problem *problem) MUST_CHECK;

#endif
