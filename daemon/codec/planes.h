/* Interleaved samples to planes, and back. */
#ifndef CODEC_PLANES_H
#define CODEC_PLANES_H

#include <stddef.h>
#include <stdint.h>

/* Takes a row of pixels of `planes` samples of `size` bytes (1, 2 or 4) apart: the first samples go
 * to `to`, those of each further plane `pitch` bytes behind. Rows are aligned to their samples. */
void planes_split(uint8_t *to, uint64_t pitch, const uint8_t *row, uint32_t planes, uint32_t width,
                  size_t size);

/* The reverse: puts a row of such pixels together. */
void planes_weave(uint8_t *row, const uint8_t *from, uint64_t pitch, uint32_t planes,
                  uint32_t width, size_t size);

#endif
