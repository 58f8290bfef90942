/* The data of an image file beside its pixels: filled in by the reader of its format, written by
 * the writer of the answer's. */
#ifndef CODEC_FILE_METADATA_H
#define CODEC_FILE_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "base/error.h"
#include "codec/exif_block.h"

enum { PROFILE_PARTS_MAX = 100, COPIES_MAX = 8 };

struct file_part {
	const uint8_t *at; /* the reader's, or one of the copies; NULL: there is none */
	size_t size;
};

struct file_metadata {
	struct exif_block *exif; /* NULL: none */
	struct file_part xmp, resources;
	struct file_part profile[PROFILE_PARTS_MAX]; /* one after another; JPEG has them apart */
	struct resolution resolution;
	GByteArray *colours, *texts; /* owned: whole chunks of a PNG; NULL: none */
	int *delays;                 /* owned: milliseconds of each frame; NULL: none are told */
	int delay_count, plays;      /* how often the frames are shown, 0: for ever */
	uint8_t *copies[COPIES_MAX]; /* owned: parts that the reader does not have as such */
};

void file_metadata_free(struct file_metadata *metadata);

/* Makes these bytes, which are malloc'd and the metadata's from now on, a part of it. Returns
 * false, and frees them, if there are too many. */
bool file_metadata_own(struct file_metadata *metadata, struct file_part *part, uint8_t *bytes,
                       size_t size) MUST_CHECK;

/* Bytes of the profile; 0: there is none. */
size_t file_metadata_profile_size(const struct file_metadata *metadata);
/* The profile in one piece, and its size. The caller frees it; NULL: none, or no memory. */
uint8_t *file_metadata_profile(const struct file_metadata *metadata, size_t *size);

/* True if there is more on the meaning of the pixels' colours than a profile, which counts more
 * than all but cICP. */
bool file_metadata_colours(const struct file_metadata *metadata);

/* True if the orientation is upright. */
bool file_metadata_upright(const struct file_metadata *metadata);

#endif
