/* Recognises a body by its first bytes. */
#ifndef CODEC_SNIFF_H
#define CODEC_SNIFF_H

#include <stddef.h>
#include <stdint.h>

#include "image/formats.h"

/* The format that the body's first bytes indicate. FORMAT_NONE: *words describe the body, "a PDF
 * document", "text". */
enum format sniff_format(const uint8_t *body, size_t size, const char **words);

#endif
