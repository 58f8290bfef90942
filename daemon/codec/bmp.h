/* Reading Windows bitmaps, without a library: they are rows in place, or runs of pixels, which
 * libvips does not read. */
#ifndef CODEC_BMP_H
#define CODEC_BMP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/file_metadata.h"
#include "image/image.h"

struct bmp;

/* Reads the headers. Grey if all colours of the palette are, else RGB; alpha if the file says so.
 * The caller keeps the file, which must outlive the result. ERR_UNDECODABLE, or
 * ERR_UNSUPPORTED_PIXELS: another image format in a BMP. */
enum error bmp_open(struct bmp **bmp, const uint8_t *file, size_t size,
                    struct problem *problem) MUST_CHECK;

void bmp_close(struct bmp **bmp);

/* Its size is the file's word until bmp_begin(). */
struct image bmp_image(const struct bmp *bmp);

/* Only with a resolution and a profile, which are in the file. The caller need not free it. */
struct file_metadata bmp_metadata(const struct bmp *bmp);

/* Finds where rows are, in memory of 16 bytes a row. ERR_UNDECODABLE: they are not all there. */
enum error bmp_begin(struct bmp *bmp, struct problem *problem) MUST_CHECK;

/* After bmp_begin(), copies a part of some rows, in any order. Pixels that no run has, or that the
 * palette lacks, are 0. */
void bmp_rows(struct bmp *bmp, uint32_t y, uint32_t count, uint32_t x, uint32_t width, uint8_t *to,
              size_t pitch);

#endif
