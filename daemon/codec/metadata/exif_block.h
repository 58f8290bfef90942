/* EXIF blocks, by libexif. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "image/image.h"

struct _ExifData;

/* The numbers are EXIF's. */
enum resolution_unit { PER_NOTHING = 1, PER_INCH = 2, PER_CM = 3 };

struct resolution {
	double x, y; /* pixels per millimetre; without a unit, the numbers of the file */
	enum resolution_unit unit;
};

/* Parses a block, with or without the title "Exif", and drops its pictures: the thumbnail with its
 * directory, and the tags of previews and of blocks that may contain some. Overwrites the
 * resolution if the block has one. NULL without memory. */
struct _ExifData *exif_block_read(const uint8_t *block, size_t size, struct resolution *resolution);
void exif_block_free(struct _ExifData **block);

/* Returns the orientation; 1 if there is none or it is out of range; 0 if it is no number. */
int exif_block_orientation(struct _ExifData *block);

/* Makes the answer's block, with its title, from this one (NULL: a minimal one), with the size of
 * the answer's image, a resolution, and the upright orientation. Returns malloc'd bytes; NULL
 * without memory. */
uint8_t *exif_block_write(struct _ExifData *block, const struct image *image,
                          const struct resolution *resolution, size_t *size);
