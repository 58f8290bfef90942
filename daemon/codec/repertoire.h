/* The formats that this worker reads and writes, by what, and how they are recognised. */
#ifndef CODEC_REPERTOIRE_H
#define CODEC_REPERTOIRE_H

#include "codec/formats/row.h"

/* Finds which of the formats that are allowed the libraries have, and blocks libvips's other
 * operations on files. Call it once, after VIPS_INIT() and before the sandbox is entered: it loads
 * libraries. */
void repertoire_init(uint32_t allowed);

struct format_sets repertoire(void);

/* An empty row where libvips alone reads the format; NULL: it is not written. */
const struct reader *repertoire_reader(enum format format);
const struct writer *repertoire_writer(enum format format);

/* The format that a body's first bytes indicate, never its declared type: only a body with such a
 * signature reaches a decoder. FORMAT_NONE: *words describe the body, "a PDF document", "text". */
enum format repertoire_recognise(const uint8_t *body, size_t size, const char **words);

#endif
