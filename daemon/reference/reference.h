/* The reference: filters by a chain in plain C and double precision, single-threaded and without a
 * device, and tells how far a correct result may differ. The tests compare the kernels with it, and
 * codec workers the devices. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "filters/chain_size.h"
#include "image/image.h"

/* A part of the result, in pixels of the whole image. */
struct window {
	uint32_t x0, y0, width, height;
};

/* A result: a window's pixels, packed, of the image's type and bands. Owned; reference_fini(). */
struct reference {
	struct window window;
	uint32_t bands;
	uint32_t type; /* enum pixel_type */
	/* A bit for each band that holds directions, for which both ends of the range are equal. */
	uint32_t circular;
	void *pixels;
	/* The largest difference that each sample of a correct result may have: a count, for floats
	 * 1e-5 of the largest magnitude in the window times the gain; and more where a later filter
	 * amplifies it, or divides, decides or turns by it. */
	float *slack;
};

/* Filters a window of an image by a valid chain, each filter applied to the complete result of the
 * one before. pixels: the window's first pixel, with the chain's halo around the window as in a
 * tile's input area; with BORDER_CROP that is inside the image. pitch: bytes from row to row. Fails
 * with ERR_MEMORY, or as chain_border_pixel(); there is then nothing to free. */
enum error reference_window(const struct chain *chain, const struct image *image,
                            const struct window *window, const void *pixels, size_t pitch,
                            struct reference *reference) MUST_CHECK;

/* Filters a whole image without padding. The window is the result, of chain_output_size(). Fails as
 * that and reference_window() do. */
enum error reference_filter(const struct chain *chain, const struct image *image, const void *in,
                            struct reference *reference) MUST_CHECK;

void reference_fini(struct reference *reference);

/* Mixes a pixel with its original, where its weight is between 0 and 1, and rounds it. Colours
 * count by their alphas, unless those are 0 or less. circular: as in struct reference. */
void reference_mix(const struct image *image, uint32_t circular, double weight,
                   const double *original, double *value, double *slack);

/* The outcome of a comparison. Any result is accepted if the reference is NaN or infinite, since a
 * kernel may skip a sample of weight 0. If the reference is finite, the result must be, too. */
struct difference {
	uint64_t samples;    /* compared */
	uint64_t mismatches; /* differ by more than their slack */
	uint64_t beyond_1;   /* differ by more than 1 */
	double largest;      /* largest difference, where slack is limited */
	/* The first mismatch, in pixels of the whole image. */
	uint32_t x, y, band;
	double got, wanted, slack;
};

/* Compares a result with the reference and adds the differences. pixels: the window's first one. */
void difference_add(struct difference *difference, const struct reference *reference,
                    const void *pixels, size_t pitch);

/* Estimates the time of reference_window() for a window of this size, in units of some 0.2 ns each.
 * A sample that is only read and compared takes ten. */
double reference_cost(const struct chain *chain, const struct image *image, uint32_t width,
                      uint32_t height);

/* Returns the best size of windows for a whole image, which caches hold and which is more than mere
 * halo; and the estimate for an image in such windows. */
void reference_piece(const struct chain *chain, const struct image *image, struct window *piece);
double reference_cost_in_pieces(const struct chain *chain, const struct image *image);
