/* The parts of a JPEG file's header that a device needs to decode the scan. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "image/jpeg.h"

/* Reads the markers of a whole file. Returns JPEG_REASON_NONE and a valid scan (jpeg_scan_valid())
 * if a device can decode the file: baseline or extended sequential, Huffman, 8 bits, gray or YCbCr
 * in one interleaved scan, sampled 4:4:4, 4:2:2 or 4:2:0. For all other files, including damaged
 * ones, returns the reason why not; libjpeg then decides. Keeps nothing. */
enum jpeg_reason jpeg_header_read(const uint8_t *file, size_t size,
                                  struct jpeg_scan *scan) MUST_CHECK;
