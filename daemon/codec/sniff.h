/* Recognises a body by its first bytes. */
#ifndef CODEC_SNIFF_H
#define CODEC_SNIFF_H

#include <stddef.h>
#include <stdint.h>

#include "image/formats.h"

/* The format that the body's first bytes indicate, or FORMAT_NONE. */
enum format sniff_format(const uint8_t *body, size_t size);

/* A description of a body in an unknown format: "a PDF document", "text". */
const char *sniff_describe(const uint8_t *body, size_t size);

#endif
