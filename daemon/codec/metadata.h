/* The metadata that an answer gets from the decoded image. */
#ifndef CODEC_METADATA_H
#define CODEC_METADATA_H

#include <stdbool.h>

struct _VipsImage;

/* Copies the metadata, except fields about the file and pictures: thumbnails, and blocks that may
 * hold one (see previews.h). strip: keeps only the profile and the unit of the resolution. */
void metadata_copy(struct _VipsImage *from, struct _VipsImage *to, bool strip);

#endif
