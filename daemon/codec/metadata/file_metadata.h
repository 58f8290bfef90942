/* The data of an image file that are not pixels. The reader of the file's format fills them in. The
 * answer's are made from them, in blocks that libvips or a writer here puts into the file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "base/error.h"
#include "codec/metadata/exif_block.h"
#include "image/formats.h"
#include "image/image.h"

struct _VipsImage;

struct file_part {
	const uint8_t *at; /* the reader's, or owned; NULL: there is none */
	size_t size;
};

struct file_metadata {
	struct _ExifData *exif; /* owned; NULL: none */
	struct file_part block; /* libvips's; an answer's own, with its title */
	struct file_part profile, xmp;
	struct file_part resources;              /* Photoshop's as in JPEG, or data sets of IPTC */
	struct file_part photoshop, description; /* TIFF: bare resources, a text with its end */
	struct file_part colours, texts;         /* whole chunks of a PNG */
	struct resolution resolution;
	const int *delays; /* the reader's: milliseconds of each frame; NULL: unknown */
	int delay_count;
	int plays; /* plays of the frames; 0: for ever; -1: not told */
	GSList *owned;
};

/* NULL: nothing to free. */
void file_metadata_free(struct file_metadata *metadata);

/* Makes a part from malloc'd bytes, which it then owns; or (NULL: none) from an array's bytes. */
void file_metadata_own(struct file_metadata *metadata, struct file_part *part, uint8_t *bytes,
                       size_t size);
void file_metadata_own_array(struct file_metadata *metadata, struct file_part *part,
                             GByteArray *array);

/* True if the orientation is upright. */
bool file_metadata_upright(const struct file_metadata *metadata);

/* Copies the metadata that libvips has read. Returns false without memory. */
bool file_metadata_read(struct file_metadata *metadata, struct _VipsImage *image) MUST_CHECK;
/* Only how long and how often its pages are shown. */
void file_metadata_read_frames(struct file_metadata *metadata, struct _VipsImage *image);

/* Fills in an answer's metadata: the parts of the body's (NULL: nothing) that its format can hold,
 * without pictures; with strip only profile, description of colours, and resolution. Changes the
 * body's EXIF. The body's metadata must outlive the answer's. Returns false without memory. */
bool file_metadata_answer(struct file_metadata *answer, const struct file_metadata *body,
                          enum format format, const struct image *image, bool strip) MUST_CHECK;

/* Gives an answer's metadata to libvips, for an image of so many pages. */
void file_metadata_tell(const struct file_metadata *answer, uint32_t pages,
                        struct _VipsImage *image);
