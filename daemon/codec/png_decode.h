/* Decoding PNG without libvips, for which it takes two to three times as long: the stream of a
 * small image is inflated as a whole. */
#ifndef CODEC_PNG_DECODE_H
#define CODEC_PNG_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "image/image.h"

/* Bytes of pixels, beside a byte a row: larger images are better decoded row by row. */
enum { PNG_PIXELS_MAX = 4 << 20 };

struct png_file;
struct file_metadata;
struct file_part;

/* Reads all but the pixels. Finds no fault: what is damaged is left out, or for others to say.
 * NULL: memory is short. The caller keeps the file, of 8 bytes or more, which must outlive the
 * result. */
struct png_file *png_open(const uint8_t *file, size_t size) MUST_CHECK;
void png_close(struct png_file **png);

/* True if png_decode() may decode the pixels, of this image. False if they are for libvips: the
 * file is large, interlaced, animated or damaged, has a palette, fewer than 8 bits a sample or a
 * transparent colour, or is not upright. */
bool png_is_plain(const struct png_file *png, struct image *image) MUST_CHECK;

/* Returns all pixels, in rows without gaps, which the caller frees. NULL: they are damaged, or
 * memory is short. */
uint8_t *png_decode(const struct png_file *png) MUST_CHECK;

/* Owned by the file, as the block of EXIF that it has. */
struct file_metadata *png_metadata(struct png_file *png);
const struct file_part *png_exif(const struct png_file *png);

/* Bit (1 << enum loss) for each: metadata that is left out. */
uint32_t png_lost(const struct png_file *png);

#endif
