/* EXIF blocks, by libexif. */
#ifndef CODEC_METADATA_EXIF_BLOCK_H
#define CODEC_METADATA_EXIF_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "image/image.h"

struct _ExifData;

/* The numbers are EXIF's. */
enum resolution_unit { PER_NOTHING = 1, PER_INCH = 2, PER_CM = 3 };

struct resolution {
	double x, y; /* pixels per millimetre; per nothing: as the file has them */
	enum resolution_unit unit;
};

/* Parses a block, with or without the title "Exif", and drops its pictures: the thumbnail with its
 * directory, and the tags of previews and of blocks that may contain some. Overwrites the
 * resolution if the block has one. NULL: no memory. */
struct _ExifData *exif_block_read(const uint8_t *block, size_t size, struct resolution *resolution);
void exif_block_free(struct _ExifData **block);

/* The orientation, 1 if the block has none or it is out of range; 0: not a number. */
int exif_block_orientation(struct _ExifData *block);

/* Makes the answer's block, with its title: this one (NULL: a minimal one) with the size of its
 * image and a resolution, and upright. Returns malloc'd bytes; NULL: no memory. */
uint8_t *exif_block_write(struct _ExifData *block, const struct image *image,
                          const struct resolution *resolution, size_t *size);

#endif
