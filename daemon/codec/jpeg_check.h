/* Compares the scan that a device made of a job with the answer that was made here. */
#ifndef CODEC_JPEG_CHECK_H
#define CODEC_JPEG_CHECK_H

#include "common/error.h"
#include "common/jpeg.h"
#include "common/wire.h"

/* Says whether the scan and that of the answer in this file are alike: the same bytes, or those of
 * the same picture but for what rounding does: another device, or other kernels of the same one,
 * may have filtered the answer's tiles. Failures are logged and mean JPEG_NOT_CHECKED. */
enum jpeg_check jpeg_check(const struct jpeg_bytes *scan, int file) MUST_CHECK;

#endif
