/* The formats that this worker reads and writes, the library for each, and their signatures. */
#pragma once

#include "codec/formats/row.h"

/* Finds the allowed formats that the libraries support, and blocks libvips's other operations on
 * files. Call it once, after VIPS_INIT() and before the sandbox is entered, because it loads
 * libraries. */
void repertoire_init(uint32_t allowed);

struct format_sets repertoire(void);

/* Returns an empty row for formats that libvips alone reads; NULL for those not written. */
const struct reader *repertoire_reader(enum format format);
const struct writer *repertoire_writer(enum format format);

/* Returns the format that a body's first bytes indicate, whatever its declared type: only a body
 * with such a signature reaches a decoder. With FORMAT_NONE *words describe the body: "a PDF
 * document", "text". */
enum format repertoire_recognise(const uint8_t *body, size_t size, const char **words);
