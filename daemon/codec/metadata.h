/* The metadata that an answer gets from the decoded image. */
#ifndef CODEC_METADATA_H
#define CODEC_METADATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct _VipsImage;
struct file_metadata;
struct file_part;

/* Copies the metadata, except fields about the file and pictures: thumbnails, and blocks that may
 * hold one (see previews.h). strip: keeps only the profile and the unit of the resolution. */
void metadata_copy(struct _VipsImage *from, struct _VipsImage *to, bool strip);

/* Says that `to` has several pages of so many rows, as long and as often shown as those of `from`.
 */
void metadata_copy_pages(struct _VipsImage *from, struct _VipsImage *to, uint32_t height);

/* Fills in what a writer other than libvips needs of an image: all but a PNG's own chunks. Returns
 * false without memory; what there is must be freed even then. */
bool metadata_read(struct file_metadata *metadata, struct _VipsImage *image) MUST_CHECK;
/* Only how long and how often its pages are shown. */
bool metadata_read_frames(struct file_metadata *metadata, struct _VipsImage *image) MUST_CHECK;

/* Sets the fields of an image that libvips has not read itself: of this metadata, whose profile is
 * in one piece, and its block of EXIF. */
void metadata_tell(const struct file_metadata *metadata, const struct file_part *exif,
                   struct _VipsImage *image);

#endif
