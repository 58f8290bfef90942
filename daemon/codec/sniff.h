/* Recognising a body by its first bytes. */
#ifndef CODEC_SNIFF_H
#define CODEC_SNIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/formats.h"

/* The format that a body begins like, or FORMAT_NONE. */
enum format sniff_format(const uint8_t *body, size_t size);

/* How many samples a PNM written in decimal text (P1 to P3) holds, or UINT64_MAX for any other. Its
 * decoder takes what is missing for black. */
uint64_t sniff_text_samples(const uint8_t *body, size_t size);

/* True of a PNG that is an animation of several frames (APNG), of which decoders read one. */
bool sniff_animated_png(const uint8_t *body, size_t size);

/* What a body that is of no known format looks like, in words: "a PDF document", "text". */
const char *sniff_describe(const uint8_t *body, size_t size);

#endif
