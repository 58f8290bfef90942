/* Limits on the work that a small file can cause in its decoder beside that for its pixels. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "image/formats.h"

/* Walks through the file's structure without decoding it, and counts everything that decoders
 * repeat or expand: scans, frames, texts, profiles, directories. Returns ERR_TOO_COMPLEX when a
 * limit is exceeded, with a problem that names the counted thing, the amount and the limit;
 * ERR_UNDECODABLE for a PNG with a chunk that is longer than the file. Files malformed otherwise
 * are left to the decoder. The body may have any length and content. */
enum error bounds_check(enum format format, const uint8_t *body, size_t size,
                        struct problem *problem) MUST_CHECK;

/* Does the same for an EXIF block, titled or not, that only the file's reader finds. */
enum error bounds_check_exif(const uint8_t *block, size_t size, struct problem *problem) MUST_CHECK;
