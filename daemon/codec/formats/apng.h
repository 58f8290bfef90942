/* Animated PNG (W3C, Portable Network Graphics, third edition, 11.3.2.3): its frames, and the
 * canvas on which they are put. Each frame is decoded from a file of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/formats/row.h"
#include "image/image.h"

enum apng_dispose { DISPOSE_NONE, DISPOSE_BACKGROUND, DISPOSE_PREVIOUS, DISPOSALS };
enum apng_blend { BLEND_SOURCE, BLEND_OVER, BLENDS };

struct apng_frame {
	uint32_t x, y, width, height; /* within the image */
	uint32_t delay;               /* milliseconds */
	enum apng_dispose dispose;    /* treatment of its area after it */
	enum apng_blend blend;
	const uint8_t *data; /* the first of its chunks, which others may follow */
	uint64_t size;       /* all its data, in bytes */
};

struct apng {
	uint32_t width, height;
	uint32_t plays;   /* 0: for ever */
	bool transparent; /* frames leave pixels out, so that the image needs alpha */
	uint32_t count;
	struct apng_frame *frames;
	/* The file's, as there: NULL where it has none. */
	const uint8_t *header, *palette, *transparency;
};

/* Finds the frames of a PNG whose acTL promises `count` of them, at least 1. The caller keeps the
 * file, which must outlive the result. ERR_UNDECODABLE: frames violate the standard or are missing.
 * ERR_MEMORY. On failure there is nothing to close. */
enum error apng_open(struct apng *apng, const uint8_t *file, size_t size, uint32_t count,
                     struct problem *problem) MUST_CHECK;
void apng_close(struct apng *apng);

/* Returns a still PNG of the i-th frame, which the caller frees. NULL without memory. */
uint8_t *apng_frame_file(const struct apng *apng, uint32_t i, size_t *size) MUST_CHECK;

/* Puts a frame's row on the canvas: `pixels` pixels of an image like this one, of integers, with or
 * without alpha. */
void apng_blend_row(uint8_t *to, const uint8_t *from, uint32_t pixels, const struct image *image,
                    enum apng_blend blend);

/* Replaces the file's image, as its loader returns it, by the part's frames one below the other, as
 * libvips arranges the frames of a GIF. Each is the picture as a viewer sees it; it gets alpha if
 * the image has none and frames leave pixels out. Rows are made on request, best from top to
 * bottom, because going back means starting again. The file must outlive the image.
 * ERR_UNDECODABLE: frames are missing; ERR_MEMORY. */
enum error apng_load(struct _VipsImage **image, const struct part *part,
                     struct problem *problem) MUST_CHECK;
