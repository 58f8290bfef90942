/* Decoding JPEG without libvips: from the bytes of a file to rows of pixels, top to bottom. */
#ifndef CODEC_JPEG_DECODE_H
#define CODEC_JPEG_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct jpeg_decoder;
struct file_metadata;

struct jpeg_header {
	uint32_t width, height, bands; /* of 8 bits: 1 grey, 3 RGB, 4 CMYK (0: no ink) */
	bool full_chroma;              /* no component is subsampled */
	bool multiscan;                /* the file is decoded whole before the first row */
};

/* Reads the header. Sets *decoder to NULL, without an error, if the file is one for libvips: its
 * orientation is not upright, or its colours are none of the above. The caller keeps the body,
 * which must outlive the decoder. ERR_UNDECODABLE: the header is damaged. */
enum error jpeg_decode_open(struct jpeg_decoder **decoder, struct jpeg_header *header,
                            const uint8_t *body, size_t size, struct problem *problem) MUST_CHECK;
void jpeg_decode_close(struct jpeg_decoder **decoder);

/* Does the work before the first row, for a multiscan file nearly all of it. The first rows do so,
 * too. */
enum error jpeg_decode_begin(struct jpeg_decoder *decoder, struct problem *problem) MUST_CHECK;

/* Decodes `count` rows from row y on, pitch bytes apart, of each only the columns x to
 * x + width - 1. Rows must not go back; those between are decoded and dropped. Allocates nothing
 * after the first call. After a failure only closing is left. */
enum error jpeg_decode_rows(struct jpeg_decoder *decoder, uint32_t y, uint32_t count, uint32_t x,
                            uint32_t width, uint8_t *to, size_t pitch,
                            struct problem *problem) MUST_CHECK;

/* Owned by the decoder. Another thread may read it while rows are decoded. */
const struct file_metadata *jpeg_decode_metadata(const struct jpeg_decoder *decoder);

#endif
