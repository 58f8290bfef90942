/* Converts samples where a file format cannot hold the image's type. */
#ifndef CODEC_CONVERT_H
#define CODEC_CONVERT_H

#include <stddef.h>

#include "common/image.h"

/* Copies samples, scaled from one type's full scale to another's, rounded to nearest and saturated;
 * copies samples of the same type unchanged. Never converts to a wider type. */
void convert_samples(void *to, enum pixel_type to_type, const void *from, enum pixel_type from_type,
                     size_t samples);

#endif
