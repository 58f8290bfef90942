/* Sizes: those of a chain's result, of the lengths that are percentages of an image, and the way
 * from the pixels of a result back to those of its image. */
#pragma once

#include "filters/chain.h"
#include "image/resampling.h"

/* Makes the chain for an image of this size: *sized is a new one from malloc(), trimmed.
 * ERR_BAD_PARAMETER if a value is then out of its limits; ERR_MEMORY. */
enum error chain_size_to(const struct chain *chain, uint32_t width, uint32_t height,
                         struct chain **sized, struct problem *problem) MUST_CHECK;

/* The way from a result's pixels back to its image's, in directions 0 (across) and 1 (down). */
struct geometry {
	bool resizes, wraps;
	uint32_t halo[2];         /* chain_halo() */
	uint32_t after[2];        /* the sum of the radii of filters after a resize */
	uint32_t crop[2];         /* pixels on each side: the halo with BORDER_CROP, else 0 */
	uint32_t size[2];         /* the result's */
	struct resizing scale[2]; /* if it resizes */
};

/* Finds the geometry. ERR_IMAGE_TOO_SMALL if BORDER_CROP leaves nothing; ERR_BAD_PARAMETER if sizes
 * are out of their limits. */
enum error chain_geometry(const struct chain *chain, const struct image *image,
                          struct geometry *geometry, struct problem *problem) MUST_CHECK;

/* Returns how many times smaller an image of this size may be decoded for the chain: 1, or a power
 * of 2 up to DRAFT_MAX if it begins with a resize that shrinks what is left at least by half. */
uint32_t chain_draft(const struct chain *chain, const struct image *image);

/* Returns the image's pixels from which these of the result are made, without the halo. */
struct extent geometry_source(const struct geometry *geometry, int direction, uint32_t first,
                              uint32_t count);

/* Sets the size of the result: the image's, less the halo on each side with BORDER_CROP, or that of
 * a resize. Errors as for chain_geometry(). */
enum error chain_output_size(const struct chain *chain, const struct image *image, uint32_t *width,
                             uint32_t *height, struct problem *problem) MUST_CHECK;
