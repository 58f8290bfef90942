/* The kinds of pixel that files have, as libvips decodes them. */
#ifndef CODEC_PIXELS_H
#define CODEC_PIXELS_H

#include "base/error.h"
#include "image/image.h"

struct _VipsImage;

/* Replaces an image of CIELAB by one of sRGB, and one of signed or 32-bit integers by
 * one of floats of the same values; nothing is computed yet. Adds to *lost, bit (1 << enum loss),
 * what that loses. False: libvips says why it fails. */
bool pixels_convert(struct _VipsImage **image, uint32_t *lost) MUST_CHECK;

/* The sample type of an image; PIXEL_TYPES if it is not supported. */
enum pixel_type pixels_type(const struct _VipsImage *vips);

/* ERR_UNSUPPORTED_PIXELS: the problem names the image's pixel type and the supported ones. */
enum error pixels_check(const struct _VipsImage *vips, struct problem *problem) MUST_CHECK;

#endif
