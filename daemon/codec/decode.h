/* Decoding: from a body to rows of pixels, top to bottom. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/formats/row.h"
#include "image/jpeg.h"
#include "wire/wire.h"

struct decoder;

/* Rows of a body that an earlier run has read, for another run on it. */
struct kept_rows {
	uint64_t run;       /* the run that read them; 0: none */
	uint64_t size_max;  /* bytes that they may take */
	uint8_t *rows;      /* rows of all pages, without gaps; owned */
	struct image image; /* as in struct decoded */
	/* rows that are there, from the first on, and rows that there will be */
	uint64_t there, all;
};

/* True if all rows are there. */
bool kept_rows_complete(const struct kept_rows *kept);
void kept_rows_free(struct kept_rows *kept);

/* Reads the body's header and checks everything that it determines, the ROI included, before any
 * pixel is decoded. chain: the filters for which rows are read, until decode_close(); NULL: none.
 * With border=wrap that is done at both ends, by a second decoder unless rows can be read in any
 * order; and a draft may do for it. job->mask: bytes of the file to skip. kept: if complete, the
 * rows come from there; otherwise they are also stored there if they fit; NULL: neither. The caller
 * keeps it and the descriptor, which must stay open until decode_close(). On failure the problem
 * has the reason, decoded->format is set if it was recognised, and there is nothing to close. */
enum error decode_open(struct decoder **decoder, struct decoded *decoded,
                       const struct message_job *job, const struct chain *chain, int body,
                       struct kept_rows *kept, struct problem *problem) MUST_CHECK;
void decode_close(struct decoder **decoder);

/* Opens the body a second time to read rows ahead of the decoder's. *ahead stays NULL if the
 * decoder can read rows in any order. */
enum error decode_open_ahead(struct decoder **ahead, const struct decoder *decoder,
                             const struct message_job *job, struct problem *problem) MUST_CHECK;

/* Does the work before the first row. For a buffered image that is most of the decoding, for which
 * libvips may use its own threads. */
enum error decode_begin(struct decoder *decoder, struct problem *problem) MUST_CHECK;

/* Selects the page whose rows are read now, up to decoded->pages - 1. Pages must not go back. */
void decode_page(struct decoder *decoder, uint32_t page);

/* Skips a few of the file's rows before row y. *more becomes false when none are left: row y can
 * then be decoded without keeping others in memory. */
enum error decode_skip(struct decoder *decoder, uint32_t y, bool *more,
                       struct problem *problem) MUST_CHECK;

/* Decodes rows y to y + count - 1 of decoded->image to `to`, pitch bytes apart. Rows must not go
 * back, unless they can be read in any order. After a failure no more rows can be read. */
enum error decode_rows(struct decoder *decoder, uint32_t y, uint32_t count, uint8_t *to,
                       size_t pitch, struct problem *problem) MUST_CHECK;

/* Lets another thread decode or close next: libvips binds its resources to a thread. */
void decode_leave(struct decoder *decoder);

/* Returns the scan of a body that a device can decode, complete with its bytes, which the decoder
 * owns; otherwise the reason why not. */
enum jpeg_reason decode_jpeg_scan(const struct decoder *decoder, struct jpeg_scan *scan,
                                  const uint8_t **bytes) MUST_CHECK;

/* Returns the body's metadata, which the decoder owns, or NULL. To be called once, before rows. */
enum error decode_metadata(struct decoder *decoder, const struct file_metadata **metadata,
                           struct problem *problem) MUST_CHECK;
