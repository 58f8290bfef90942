/* Chunks of PNG files beside the pixels (W3C, Portable Network Graphics, chapters 5 and 11). */
#ifndef CODEC_PNG_METADATA_H
#define CODEC_PNG_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "codec/file_metadata.h"
#include "common/error.h"
#include "common/image.h"

/* Bytes of a chunk around its data: length and name, and a checksum. */
enum { PNG_CHUNK_HEAD = 8, PNG_CHUNK_FRAME = 12 };

struct png_chunk {
	const uint8_t *name; /* 4 letters; the data follow */
	uint32_t size;       /* of the data */
};

/* Reads the chunk at *at, moves on to the next one. False: none is left, or it is damaged. */
bool png_chunk_next(const uint8_t **at, const uint8_t *end, struct png_chunk *chunk) MUST_CHECK;
bool png_chunk_is(const struct png_chunk *chunk, const char *name);

void png_put_number(uint8_t *at, uint32_t value);

/* Fills in the length before the name and the checksum behind the data. */
void png_chunk_seal(uint8_t *chunk, uint32_t size);

struct png_reading {
	const struct image *image;
	struct file_metadata *metadata;
	struct file_part exif;
	unsigned seen; /* bit (1 << kind) for each kind of chunk */
};

/* Takes a chunk from before the pixels. False if the file is one for libvips: the chunk is of an
 * unusual kind, has an unusual or wrong value, or there are several of a kind; or memory is short.
 */
bool png_metadata_take(struct png_reading *reading, const struct png_chunk *chunk) MUST_CHECK;

/* After the last one. False if the file is one for libvips: chunks contradict each other, or the
 * orientation is not upright; or memory is short. */
bool png_metadata_end(struct png_reading *reading) MUST_CHECK;

/* True if png_metadata_write() writes this as libvips would; else libvips must. */
bool png_metadata_fits(const struct file_metadata *metadata, const struct image *image);

/* Appends the chunks of the answer, without pictures; with strip only profile and resolution.
 * Changes the EXIF block. NULL: there is nothing but the default resolution. Returns false without
 * memory. */
bool png_metadata_write(const struct file_metadata *metadata, bool strip, const struct image *image,
                        GByteArray *to) MUST_CHECK;

#endif
