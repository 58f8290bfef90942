/* Chunks of PNG files beside the pixels (W3C, Portable Network Graphics, chapters 5 and 11). */
#ifndef CODEC_PNG_METADATA_H
#define CODEC_PNG_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "base/error.h"
#include "codec/file_metadata.h"
#include "codec/png_chunks.h"
#include "image/image.h"

extern const uint8_t png_signature[PNG_SIGNATURE];

/* True if all of the chunk is there and its checksum is right. */
bool png_chunk_is_sound(const struct png_chunk *chunk);

void png_put_number(uint8_t *at, uint32_t value);

/* Fills in the length before the name and the checksum behind the data. */
void png_chunk_seal(uint8_t *chunk, uint32_t size);

struct png_reading {
	struct file_metadata *metadata;
	struct file_part exif; /* the file's, or a copy of the metadata */
	bool colour;           /* the file's pixels, or its palette, are not grey */
	bool pixels;           /* they have come: only texts and EXIF may follow */
	bool lost;             /* what is damaged, or not as the standard says, is left out */
	unsigned seen;         /* bit (1 << kind) for each kind of chunk */
};

/* Reads a chunk; leaves out those that tell nothing of the image that is to be kept. */
void png_metadata_read(struct png_reading *reading, const struct png_chunk *chunk);

/* After the last one. Returns false without memory. */
bool png_metadata_end(struct png_reading *reading) MUST_CHECK;

/* Appends the chunks of the answer, without pictures; with strip only profile, description of
 * colours, and resolution. Changes the EXIF block. NULL: there is nothing but the default
 * resolution. Returns false without memory. */
bool png_metadata_write(const struct file_metadata *metadata, bool strip, const struct image *image,
                        GByteArray *to) MUST_CHECK;

#endif
