/* What travels beside the pixels, from the image that was decoded to the answer. */
#ifndef CODEC_METADATA_H
#define CODEC_METADATA_H

#include <stdbool.h>

struct _VipsImage;

/* Copies the metadata, save what is about the file or is a picture: a thumbnail, or a block that
 * may hold one (see previews.h). strip: only the profile and the unit of the resolution. */
void metadata_copy(struct _VipsImage *from, struct _VipsImage *to, bool strip);

#endif
