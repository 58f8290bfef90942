/* Decoding PNG without libvips, for which it takes two to three times as long: the stream of a
 * small image is inflated as a whole. */
#ifndef CODEC_PNG_DECODE_H
#define CODEC_PNG_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/image.h"

/* Bytes of pixels, beside a byte a row: larger images are better decoded row by row. */
enum { PNG_PIXELS_MAX = 4 << 20 };

struct png_file;
struct file_metadata;

/* Reads all but the pixels. NULL, without an error, if the file is one for libvips: it is large,
 * interlaced, animated or damaged, has a palette, fewer than 8 bits a sample or a transparent
 * colour, is not upright, has chunks that png_metadata_take() does not; or memory is short. The
 * caller keeps the file, which must outlive the result. */
struct png_file *png_open(const uint8_t *file, size_t size, struct image *image) MUST_CHECK;
void png_close(struct png_file **png);

/* Returns all pixels, in rows without gaps, which the caller frees. NULL: they are damaged, or
 * memory is short. */
uint8_t *png_decode(const struct png_file *png) MUST_CHECK;

/* Owned by the file. */
const struct file_metadata *png_metadata(const struct png_file *png);

#endif
