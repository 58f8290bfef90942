/* The formats that this worker reads and writes. */
#ifndef CODEC_REPERTOIRE_H
#define CODEC_REPERTOIRE_H

#include "image/formats.h"

/* Finds what libvips has of the formats that are allowed, and blocks its other operations on files.
 * Call it once, after VIPS_INIT() and before the sandbox is entered: it loads libraries. */
void repertoire_init(uint32_t allowed);

/* Takes some of them away, which do not work. */
void repertoire_drop(const struct format_sets *sets);

struct format_sets repertoire(void);

#endif
