/* Files that the worker reads or writes without libvips, and libvips's results for them: the
 * answers must be alike, and the errors the same words. */
#ifndef TESTS_CODEC_LANES_H
#define TESTS_CODEC_LANES_H

#include "image/formats.h"
#include "pictures.h"

/* An EXIF block with its title, as a camera writes it: with a thumbnail, a maker note, and tags of
 * all that may hold pictures. */
GByteArray *camera_block(bool big_endian);

/* JPEGs and raw pixels are compared byte for byte, PNGs by their pixels and metadata. */
void expect_alike(const struct file *file, enum format from, enum format to, bool strip,
                  const char *name);

/* The same of parts of the file. */
void expect_cuts_alike(const struct file *whole, enum format from, enum format to,
                       const char *name);

/* Puts bytes of any value at some places. */
void damage(uint32_t *state, uint8_t *bytes, size_t size, int hits);

void test_pngs(void);

#endif
