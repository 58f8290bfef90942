/* EXIF blocks. */
#ifndef CODEC_EXIF_BLOCK_H
#define CODEC_EXIF_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exif_block;

/* The numbers are EXIF's. */
enum resolution_unit { PER_NOTHING = 1, PER_INCH = 2, PER_CM = 3 };

struct resolution {
	double x, y; /* pixels per millimetre; per nothing: as the file has them */
	enum resolution_unit unit;
};

/* Facts on its image that the answer's block has. */
struct exif_facts {
	uint32_t width, height;
	struct resolution resolution;
};

/* Parses a block, with or without the title "Exif", and drops its pictures: the thumbnail with its
 * directory, and the tags of previews and of blocks that may contain some. Overwrites the
 * resolution if the block has one. NULL: no memory. */
struct exif_block *exif_block_read(const uint8_t *block, size_t size,
                                   struct resolution *resolution);
void exif_block_free(struct exif_block **block);

/* The orientation, 1 if the block has none or it is out of range; 0: not a number. */
int exif_block_orientation(const struct exif_block *block);

/* Makes the answer's block: this one (NULL: a minimal one) with the facts set, and upright. Returns
 * malloc'd bytes; NULL: no memory. */
uint8_t *exif_block_write(struct exif_block *block, const struct exif_facts *facts, size_t *size);

#endif
