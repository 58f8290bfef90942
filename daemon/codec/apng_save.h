/* Writing animated PNGs. */
#ifndef CODEC_APNG_SAVE_H
#define CODEC_APNG_SAVE_H

#include <stdint.h>

struct _VipsImage;
struct _VipsTarget;

/* Writes an image of `pages` pages, one below the other, as frames, with its delays (100 ms
 * without) and loops. Each is whole. Asks for the image's rows from top to bottom. Returns 0, or -1
 * with libvips's error set. */
int apng_save(struct _VipsImage *image, uint32_t pages, int compression,
              struct _VipsTarget *target);

#endif
