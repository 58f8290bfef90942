/* Compares what a device made of a job, a scan or pixels, with the answer that was made here. */
#ifndef CODEC_JPEG_CHECK_H
#define CODEC_JPEG_CHECK_H

#include "base/error.h"
#include "image/jpeg.h"
#include "wire/tile.h"
#include "wire/wire.h"

/* Says whether the scan and that of the answer in this file are alike: the same bytes, or those of
 * the same picture but for what rounding does: another device, or other kernels of the same one,
 * may have filtered the answer's tiles. Failures are logged and mean JPEG_NOT_CHECKED. */
enum jpeg_check jpeg_check(const struct jpeg_bytes *scan, int file) MUST_CHECK;

/* Keeps the result of a tile whose input was a scan: rows out_pitch bytes apart. Each row of the
 * tiles of pixels is compared with it, in parts; the end says whether they were alike, and frees
 * it. NULL without memory, logged. */
struct jpeg_compared;
struct jpeg_compared *jpeg_compare_new(const struct tiling *tiling, const void *rows);
void jpeg_compare_row(struct jpeg_compared *compared, uint32_t y, uint32_t x, const uint8_t *pixels,
                      uint32_t width);
enum jpeg_check jpeg_compare_end(struct jpeg_compared **compared);

#endif
