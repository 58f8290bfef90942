/* Decoding: from a body to rows of pixels, top to bottom. */
#ifndef CODEC_DECODE_H
#define CODEC_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/formats.h"
#include "common/image.h"
#include "common/wire.h"

struct decoder;
struct _VipsImage;

/* What the header says. */
struct decoded {
	enum format format; /* of the body; FORMAT_RAW for bare pixels */
	struct image whole; /* after orientation */
	struct image image; /* what rows are read of: the job's ROI, or all of it */
	bool cmyk;          /* four bands that are inks */
	bool full_chroma;   /* of a JPEG: its colours have the resolution of the image */
	bool more_frames;   /* or pages, of which the first is read */
	bool any_order;     /* rows can be read in any order, again and again */
};

/* Reads the header of the body and checks all that the header can tell, the ROI too, before any
 * pixel is decoded. The descriptor stays the caller's and open until decode_close(). On failure the
 * problem says why, decoded->format is set if it was recognised, and there is nothing to close. */
enum error decode_open(struct decoder **decoder, struct decoded *decoded,
                       const struct message_job *job, int body, struct problem *problem) MUST_CHECK;
void decode_close(struct decoder **decoder);

/* Does what comes before the first row: for a buffered image, most of the work, which libvips may
 * give to threads of its own. */
enum error decode_begin(struct decoder *decoder, struct problem *problem) MUST_CHECK;

/* Reads past a few of the rows that come before row y in the file. *more is false once there are
 * none: row y can then be decoded without others being held in memory. */
enum error decode_skip(struct decoder *decoder, uint32_t y, bool *more,
                       struct problem *problem) MUST_CHECK;

/* Decodes rows y to y + count - 1 of decoded->image to `to`, pitch bytes apart. Rows must not go
 * back unless they can be read in any order. After a failure no more rows can be read. */
enum error decode_rows(struct decoder *decoder, uint32_t y, uint32_t count, uint8_t *to,
                       size_t pitch, struct problem *problem) MUST_CHECK;

/* Lets another thread be the next to decode, or to close: libvips ties what it holds to a thread.
 */
void decode_leave(struct decoder *decoder);

enum { DECODE_STEP = 64 }; /* rows that are decoded at a time */

/* The image whose metadata the answer carries; NULL for bare pixels. It is the decoder's, and must
 * not be looked at once rows are being decoded. */
struct _VipsImage *decode_metadata(const struct decoder *decoder);

#endif
