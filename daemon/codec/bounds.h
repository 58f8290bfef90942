/* Bounds on what a small file can make its decoder do, beyond its pixels. */
#ifndef CODEC_BOUNDS_H
#define CODEC_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/formats.h"

/* Walks through the file's structure, without decoding it, and counts what decoders repeat or
 * expand: scans, frames, texts, profiles, directories. On too much of one it returns
 * ERR_TOO_COMPLEX, and the problem names it, its amount and its limit. What is malformed is left to
 * the decoder. The body may be of any length and content. */
enum error bounds_check(enum format format, const uint8_t *body, size_t size,
                        struct problem *problem) MUST_CHECK;

#endif
