/* Converts samples where a file format cannot hold the image's type. */
#ifndef CODEC_CONVERT_H
#define CODEC_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include "common/image.h"

struct output_format;

/* Copies samples, scaled from one type's full scale to another's, rounded to nearest and saturated;
 * copies samples of the same type unchanged. Never converts to a wider type. */
void convert_samples(void *to, enum pixel_type to_type, const void *from, enum pixel_type from_type,
                     size_t samples);

/* Makes of a composed row, or of one that is converted to sRGB, one of bytes: blue, green, red and,
 * where `bands` is 4, alpha. At most `bands` are there; grey becomes three colours. */
void convert_to_bgr(uint8_t *to, uint32_t bands, const struct output_format *output,
                    const uint8_t *row);

#endif
