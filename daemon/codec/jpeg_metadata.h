/* What a JPEG file carries beside its pixels, and what its answer gets of it. */
#ifndef CODEC_JPEG_METADATA_H
#define CODEC_JPEG_METADATA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "codec/exif_block.h"
#include "common/error.h"

enum { PROFILE_PARTS_MAX = 100 };

struct jpeg_part {
	const uint8_t *at; /* the decoder's; NULL: there is none */
	size_t size;
};

struct jpeg_metadata {
	struct exif_block *exif; /* NULL: none */
	struct jpeg_part xmp, resources, profile[PROFILE_PARTS_MAX];
	struct resolution resolution;
};

/* Before the header is read: makes the decoder keep the segments. */
void jpeg_metadata_expect(struct jpeg_decompress_struct *decoder);

/* Once the header has been read. The metadata refers to the decoder's memory. Returns false without
 * memory. */
bool jpeg_metadata_read(struct jpeg_metadata *metadata,
                        const struct jpeg_decompress_struct *decoder) MUST_CHECK;
void jpeg_metadata_free(struct jpeg_metadata *metadata);

/* Writes the segments of the answer after its start, without pictures; with strip only profile and
 * resolution. Changes the EXIF block. NULL: there is nothing but the default resolution. Returns
 * false without memory. May leave by a jump. */
bool jpeg_metadata_write(const struct jpeg_metadata *metadata, bool strip,
                         struct jpeg_compress_struct *encoder) MUST_CHECK;

#endif
