/* Writing PNM and bare pixels. */
#ifndef CODEC_PNM_H
#define CODEC_PNM_H

#include "codec/output_format.h"
#include "common/error.h"

/* Returns a row of the answer, valid until the next call; NULL: there are no more. */
typedef const uint8_t *pnm_row(void *context, uint32_t y);

/* Takes rows one after another and writes them to an empty file as FORMAT_PNM or FORMAT_RAW. Rows
 * that end too early are no error here. */
enum error pnm_write(const struct output_format *output, pnm_row *row, void *context, int file,
                     struct problem *problem) MUST_CHECK;

#endif
