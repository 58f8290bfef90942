/* The reference: what a chain of filters comes to, in plain C and double precision, by one thread
 * and without a device; and how far a result may be from that and still be right. The tests hold
 * the kernels against it, and the codec workers the devices. */
#ifndef REFERENCE_REFERENCE_H
#define REFERENCE_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "common/chain.h"
#include "common/error.h"
#include "common/image.h"

/* A part of the result, in pixels of the whole image. */
struct window {
	uint32_t x0, y0, width, height;
};

/* A result: a window's pixels, packed, of the image's type and bands. Owned; reference_fini(). */
struct reference {
	struct window window;
	uint32_t bands;
	uint32_t type; /* enum pixel_type */
	/* Bit of each band that holds directions, where one end of the range is the other. */
	uint32_t circular;
	void *pixels;
	/* How far each sample may be off, up to anything: the number format's rounding (a count; of
	 * floats 1e-5 of the largest magnitude in the window, times the gain), and what comes of it
	 * where a later filter enlarges it, or divides, decides or turns by it. */
	float *slack;
};

/* Filters a window of an image by a valid chain: each filter applied to the whole result of the one
 * before it. pixels: the window's first pixel, in an area that holds the chain's halo on all sides
 * and, outside the image, what the border rule makes (as a tile's input area does); pitch: bytes
 * from row to row. With BORDER_CROP the window is at least the halo away from the image's edge.
 * After a failure there is nothing to free: ERR_MEMORY, or as chain_border_pixel(). */
enum error reference_window(const struct chain *chain, const struct image *image,
                            const struct window *window, const void *pixels, size_t pitch,
                            struct reference *reference) MUST_CHECK;

/* Filters a whole image, rows packed without padding; the window is then the whole result, of
 * chain_output_size(). */
enum error reference_filter(const struct chain *chain, const struct image *image, const void *in,
                            struct reference *reference) MUST_CHECK;

void reference_fini(struct reference *reference);

/* About how many multiply-adds reference_window() takes for a window of this size. */
double reference_cost(const struct chain *chain, const struct image *image, uint32_t width,
                      uint32_t height);

#endif
