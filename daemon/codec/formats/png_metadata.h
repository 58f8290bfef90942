/* PNG's chunks that are not pixels (W3C, Portable Network Graphics, chapters 5 and 11). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "base/error.h"
#include "codec/metadata/containers.h"
#include "codec/metadata/file_metadata.h"

/* Returns true if the chunk is complete and its checksum is right. */
bool png_chunk_is_sound(const struct png_chunk *chunk);

/* Fills in the length before the name and the checksum behind the data. */
void png_chunk_seal(uint8_t *chunk, uint32_t size);

struct png_reading {
	struct file_metadata *metadata;
	struct file_part exif;       /* the file's, or a part that the metadata owns */
	GByteArray *colours, *texts; /* whole chunks; the metadata's in the end */
	bool colour;                 /* the file's pixels, or its palette, are not grey */
	bool pixels;                 /* they have come: only texts and EXIF may follow */
	bool lost;                   /* damaged or non-standard data are left out */
	unsigned seen;               /* bit (1 << kind) for each kind of chunk */
};

/* Reads a chunk; ignores chunks that say nothing to be kept about the image. */
void png_metadata_read(struct png_reading *reading, const struct png_chunk *chunk);

/* Ends the reading of chunks, and must be called in any case. Returns false without memory. */
bool png_metadata_end(struct png_reading *reading) MUST_CHECK;

/* Appends the chunks of an answer. Returns false without memory. */
bool png_metadata_write(const struct file_metadata *answer, GByteArray *to) MUST_CHECK;
