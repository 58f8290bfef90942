/* Decoding a still WebP file without libvips, which composes every picture as a frame of an
 * animation: that takes longer than to decode it. */
#ifndef CODEC_WEBP_DECODE_H
#define CODEC_WEBP_DECODE_H

#include <stddef.h>
#include <stdint.h>

/* Returns all pixels of the file, in rows without gaps: `bands` bytes each, 3 (RGB) or 4 (RGB and
 * alpha). The caller frees them. NULL if the file is not a single picture of this size, or is
 * damaged, or memory is short; libvips then says which. */
uint8_t *webp_decode(const uint8_t *file, size_t size, uint32_t width, uint32_t height,
                     uint32_t bands);

#endif
