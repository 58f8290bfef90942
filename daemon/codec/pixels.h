/* The kinds of pixel that files have, as libvips decodes them. */
#ifndef CODEC_PIXELS_H
#define CODEC_PIXELS_H

#include "common/error.h"
#include "common/image.h"

struct _VipsImage;

/* The type of its samples, PIXEL_TYPES if that is none of ours. */
enum pixel_type pixels_type(const struct _VipsImage *vips);

/* ERR_UNSUPPORTED_PIXELS says what the image is and what would be right. */
enum error pixels_check(const struct _VipsImage *vips, struct problem *problem) MUST_CHECK;

#endif
