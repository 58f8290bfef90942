/* Animated PNG (W3C, Portable Network Graphics, third edition, 11.3.2.3): its frames, and the
 * canvas that they are put on. Each is decoded from a file of its own. */
#ifndef CODEC_FORMATS_APNG_H
#define CODEC_FORMATS_APNG_H

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
 * file, which must outlive the result. ERR_UNDECODABLE: they are not as the standard says, or not
 * all there. ERR_MEMORY. On failure there is nothing to close. */
enum error apng_open(struct apng **apng, const uint8_t *file, size_t size, uint32_t count,
                     struct problem *problem) MUST_CHECK;
void apng_close(struct apng **apng);

/* A still PNG of the i-th frame, which the caller frees. NULL without memory. */
uint8_t *apng_frame_file(const struct apng *apng, uint32_t i, size_t *size) MUST_CHECK;

/* Puts a frame's row on the canvas: `pixels` pixels of an image like this, with alpha or without,
 * of integers. */
void apng_blend_row(uint8_t *to, const uint8_t *from, uint32_t pixels, const struct image *image,
                    enum apng_blend blend);

/* Replaces the file's image, as its loader gives it, by the part's frames, one below the other, as
 * libvips gives those of a GIF. Each is as it is seen, so with alpha if there is none and frames
 * leave pixels out. Rows are made as they are asked for, best from top to bottom: to go back is to
 * begin again. The file must outlive the image. ERR_UNDECODABLE: they are not all there;
 * ERR_MEMORY. */
enum error apng_load(struct _VipsImage **image, const struct part *part,
                     struct problem *problem) MUST_CHECK;

#endif
