/* Files that the worker reads or writes without libvips, and libvips's results for them: the
 * answers must be alike, and the errors the same words. */
#ifndef TESTS_CODEC_LANES_H
#define TESTS_CODEC_LANES_H

#include "image/formats.h"
#include "pictures.h"

/* An EXIF block with its title. */
struct block {
	GByteArray *bytes;
	bool big_endian;
};

/* As a camera writes it, with a thumbnail, a maker note, and tags of all that may hold pictures. */
struct block camera_block(bool big_endian);

/* JPEGs and raw pixels are compared byte for byte, PNGs by their pixels and metadata. */
void expect_alike(const struct file *file, enum format from, enum format to, bool strip,
                  const char *name);

void test_pngs(void);

#endif
