/* The kinds of pixel that files have, as libvips decodes them. */
#ifndef CODEC_PIXELS_H
#define CODEC_PIXELS_H

#include "common/error.h"
#include "common/image.h"

struct _VipsImage;

/* The sample type of an image; PIXEL_TYPES if it is not supported. */
enum pixel_type pixels_type(const struct _VipsImage *vips);

/* ERR_UNSUPPORTED_PIXELS: the problem names the image's pixel type and the supported ones. */
enum error pixels_check(const struct _VipsImage *vips, struct problem *problem) MUST_CHECK;

#endif
