/* Reading pixels by libvips, with additions to its loader by the format's own reader. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/formats/row.h"

struct vips_reader {
	const struct reader *helper; /* the format's */
	struct part part;            /* the part to load */
	char who[32];
	struct _VipsImage *image; /* NULL until loaded */
	struct _VipsSource *source;
	struct _VipsRegion *region; /* bound to the thread that reads rows */
};

/* Loads the part, again if it has changed, and fills in the kind of decoded->pages, their losses,
 * and the number of pages in the file. CIELAB becomes sRGB, and signed or 32-bit integers become
 * floats of the same values; nothing is computed yet. */
enum error vips_reader_load(struct vips_reader *v, bool any_order, struct decoded *decoded,
                            struct problem *problem) MUST_CHECK;
void vips_reader_close(struct vips_reader *v);

/* ERR_UNSUPPORTED_PIXELS: the problem names the image's kind of pixels and the supported ones. */
enum error vips_reader_check(const struct vips_reader *v, struct problem *problem) MUST_CHECK;

/* True if the orientation changes the rows' order. They are then held, for reading in any order. */
bool vips_reader_turns(const struct vips_reader *v);

/* Returns the bytes of memory per pixel if the image cannot be decoded row by row; otherwise 0. */
uint64_t vips_reader_held(const struct vips_reader *v, const struct decoded *decoded);

/* Turns the image upright. */
enum error vips_reader_turn(struct vips_reader *v, struct decoded *decoded,
                            struct problem *problem) MUST_CHECK;

/* Loads a JPEG anew as a draft, decoded->image, and turns that upright. */
enum error vips_reader_shrink(struct vips_reader *v, uint32_t by, struct decoded *decoded,
                              struct problem *problem) MUST_CHECK;

/* Decodes an area of the image with all its pages to rows pitch bytes apart (NULL: to nowhere). */
enum error vips_reader_rows(struct vips_reader *v, const struct area *area, uint8_t *to,
                            size_t pitch, struct problem *problem) MUST_CHECK;

/* The place of a pixel in a region, which may be larger than requested. */
uint8_t *vips_reader_pixel(const struct _VipsRegion *region, int x, int y);

/* The sample type of an image; PIXEL_TYPES if it is not supported. */
enum pixel_type vips_reader_type(const struct _VipsImage *image);
