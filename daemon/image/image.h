/* Pixels and images: types, bands, sizes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Full scale is 255, 65535, 1.0; the midpoint, around which signed results lie, 128, 32768, 0. */
enum pixel_type { PIXEL_U8, PIXEL_U16, PIXEL_F32, PIXEL_TYPES };

/* Up to BANDS_MAX bands are filtered together; beyond, each is a plane, an image in grey. */
enum { BANDS_MAX = 4, IMAGE_BANDS_MAX = 21, IMAGE_SIDE_MAX = 1000000 };

/* Decoders make drafts up to this many times smaller. */
enum { DRAFT_MAX = 8 };

/* The place of an image that was decoded smaller than it is. It covers the original, and so many
 * pixels of that beyond its edges (negative: fewer than to there): left and above, right and below,
 * less than DRAFT_MAX. */
struct draft {
	uint32_t width, height; /* the original's; 0: this is no draft */
	int32_t before[2], after[2];
};

/* An interleaved image. With alpha, the last band is alpha (bands is then 2 or 4). */
struct image {
	uint32_t width, height; /* pixels, 1 to IMAGE_SIDE_MAX */
	uint32_t bands;         /* 1 to IMAGE_BANDS_MAX */
	uint32_t type;          /* enum pixel_type */
	uint32_t alpha;         /* 0 or 1 */
	struct draft draft;
};

/* A rectangle of an image, in pixels. */
struct area {
	uint32_t x, y, width, height;
};

/* The rule for rows and columns outside the image: see kernels/border.h. */
enum border {
	BORDER_REPLICATE,
	BORDER_REFLECT,
	BORDER_REFLECT101,
	BORDER_WRAP,
	BORDER_CONSTANT,
	BORDER_CROP,
	BORDERS
};

extern const struct pixel_type_row {
	const char *name; /* "u8", "u16", "f32" */
	size_t size;      /* bytes a sample */
	double full_scale, midpoint;
} pixel_type_rows[PIXEL_TYPES];

/* Return the pixels; the bytes of one, of a row without padding, of the image; none overflows. */
uint64_t image_pixels(const struct image *image);
size_t image_pixel_size(const struct image *image);
size_t image_row_size(const struct image *image);
uint64_t image_size(const struct image *image);

/* Read and write the i-th of an array of samples, whose type must be able to hold the value. */
double image_get_sample(const void *samples, size_t i, enum pixel_type type);
void image_put_sample(void *samples, size_t i, enum pixel_type type, double value);

/* True if every field is within its limits. */
bool image_valid(const struct image *image);

/* Makes the image a draft of itself of this size, whose pixels stand for squares of `by` pixels a
 * side, from the upper left corner on; 0: it covers just the image. */
void image_shrink(struct image *image, uint32_t width, uint32_t height, uint32_t by);

/* Return the number of planes, 1 if all bands are filtered together, and a plane as an image. */
uint32_t image_planes(const struct image *image);
struct image image_plane(const struct image *image);

/* Reads "WIDTHxHEIGHTxBANDS:TYPE", such as "640x480x3:u8". Returns false if the text has another
 * form or a number is out of its limits; *image is then undefined. */
bool image_parse(const char *text, struct image *image) MUST_CHECK;

/* Reads "X,Y,WIDTH,HEIGHT" in the same way; sides are 1 to IMAGE_SIDE_MAX. */
bool area_parse(const char *text, struct area *area) MUST_CHECK;
/* Returns true if the whole area lies within the image, for any numbers. */
bool area_inside(const struct area *area, const struct image *image);
