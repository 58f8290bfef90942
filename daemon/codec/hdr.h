/* Radiance HDR: what its header says. */
#ifndef CODEC_HDR_H
#define CODEC_HDR_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Refuses a file whose header does not end within HDR_HEAD_MAX bytes, or that says what libvips
 * does not look at: samples in CIE XYZ, rows in another order. ERR_UNSUPPORTED_PIXELS or
 * ERR_UNDECODABLE. */
enum error hdr_check(const uint8_t *file, size_t size, struct problem *problem) MUST_CHECK;

enum { HDR_HEAD_MAX = 64 << 10 };

#endif
