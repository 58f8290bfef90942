/* The kinds of pixel that files have, as libvips decodes them. */
#ifndef CODEC_KIND_H
#define CODEC_KIND_H

#include "common/error.h"
#include "common/image.h"

struct _VipsImage;

/* The type of its samples, PIXEL_TYPES if that is none of ours. */
enum pixel_type kind_type(const struct _VipsImage *vips);

/* ERR_UNSUPPORTED_PIXELS says what the image is and what would be right. */
enum error kind_check(const struct _VipsImage *vips, struct problem *problem) MUST_CHECK;

#endif
