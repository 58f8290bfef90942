/* TIFFs that libvips's loader would take for others, or decode in a wrong way: alpha that colours
 * are multiplied by, YCbCr without JPEG, JPEGs in tiles, planes that lie apart. libtiff says what a
 * page is, and converts some kinds to RGB. */
#ifndef CODEC_TIFF_H
#define CODEC_TIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct _VipsImage;

/* A file, and the pages of it that are read. `file` must stay valid as long as images that are
 * loaded. */
struct tiff_part {
	uint8_t *file; /* may be written to */
	size_t size;
	uint32_t page;
	bool all;            /* and the pages after it */
	uint64_t memory_max; /* bytes for decoding */
};

/* The way to load a part. */
struct tiff_way {
	bool converts;         /* by tiff_load(), else by libvips */
	uint8_t premultiplied; /* band of alpha by which libvips is not told that colours are
	                          multiplied; 0: none */
	const uint8_t *hidden; /* set by tiff_choose() */
};

/* Chooses the way, which must be all zeros before the first call for a file. In the file alpha by
 * which colours are multiplied becomes alpha by which they are not. A file that libtiff does not
 * open is left to libvips, to say what is wrong. ERR_UNSUPPORTED_PIXELS: the problem names what
 * cannot be read. */
enum error tiff_choose(struct tiff_way *way, const struct tiff_part *part,
                       struct problem *problem) MUST_CHECK;

/* Sets *image to one of 8-bit RGB or grey, decoded as it is asked for. ERR_TOO_MANY_PIXELS: a strip
 * or a row of tiles would take more than memory_max. */
enum error tiff_load(struct _VipsImage **image, const struct tiff_part *part,
                     struct problem *problem) MUST_CHECK;

/* Replaces an image of u8, u16 or f32 by one whose colours are divided by alpha, which is in this
 * band after them. False: libvips says why it fails. */
bool tiff_divide(struct _VipsImage **image, unsigned alpha) MUST_CHECK;

#endif
