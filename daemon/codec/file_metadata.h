/* What an image file carries beside its pixels: filled in by the reader of its format, written by
 * the writer of the answer's. */
#ifndef CODEC_FILE_METADATA_H
#define CODEC_FILE_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/exif_block.h"
#include "common/error.h"

enum { PROFILE_PARTS_MAX = 100, TEXTS_MAX = 20 };

struct file_part {
	const uint8_t *at; /* the reader's, or inflated; NULL: there is none */
	size_t size;
};

struct file_metadata {
	struct exif_block *exif; /* NULL: none */
	struct file_part xmp, resources;
	struct file_part profile[PROFILE_PARTS_MAX]; /* one after another; JPEG has them apart */
	struct file_part texts[TEXTS_MAX];           /* whole chunks of a PNG */
	struct resolution resolution;
	uint8_t *inflated[2]; /* owned: a profile, and a PNG's XMP */
};

void file_metadata_free(struct file_metadata *metadata);

/* Bytes of the profile; 0: there is none. */
size_t file_metadata_profile_size(const struct file_metadata *metadata);
/* The profile in one piece, and its size. The caller frees it; NULL: none, or no memory. */
uint8_t *file_metadata_profile(const struct file_metadata *metadata, size_t *size);

/* True if the orientation is upright. */
bool file_metadata_upright(const struct file_metadata *metadata);

#endif
