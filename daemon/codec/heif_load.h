/* HEIF files, of HEVC or AV1, by libheif. libvips's loader cannot tell whether a picture is whole,
 * takes limited grey for full, and says a wrong size where a file turns its picture before telling
 * it. */
#ifndef CODEC_HEIF_LOAD_H
#define CODEC_HEIF_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct _VipsImage;

/* Opens the picture that is meant to be seen first, upright, as RGB or RGBA in full scale of 8 or
 * 16 bits, with its metadata and, as pages, the number of pictures in the file. It is decoded when
 * the first row is asked for, whole. The file must outlive the image. ERR_UNDECODABLE, with the
 * reason among libvips's errors, or with the problem ERR_TOO_COMPLEX or ERR_MEMORY; *image is then
 * NULL. */
enum error heif_load(struct _VipsImage **image, const uint8_t *file, size_t size,
                     struct problem *problem) MUST_CHECK;

#endif
