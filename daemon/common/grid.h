/* A Gaussian of very large sigma: the points of a lattice (lattice.h) for all of an image. They are
 * so few that they are kept for the whole image, already blurred, and any pixel of the result is
 * made from the few around it. So tiles need no halo, however large sigma is.
 *
 * The two directions are apart from each other, and may have other sigmas. */
#ifndef COMMON_GRID_H
#define COMMON_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "common/lattice.h"

/* Above this sigma, in either direction, a Gaussian is computed on a grid. */
#define GRID_SIGMA 100.0

/* Across and down. */
enum { GRID_X, GRID_Y, GRID_AXES };

struct grid_axis {
	struct lattice lattice;
	struct lattice_span span; /* the points that the image's pixels are made from */
};

struct grid {
	struct grid_axis axis[GRID_AXES];
	uint32_t bands;
};

/* The most words that the points of a grid may take. */
enum { GRID_WORDS_MAX = 1 << 22 };

/* sigma: of each axis, up to LATTICE_SIGMA_MAX; width and height: of the image, at least 1. */
struct grid grid_for(const double sigma[GRID_AXES], uint32_t width, uint32_t height,
                     uint32_t bands);

/* How many words of a chain's coefficients the points take: as floats, two in each, row after row,
 * the bands of a point together. Of images too large for any grid it is more than GRID_WORDS_MAX,
 * but less than 2^32. */
uint64_t grid_words(const double sigma[GRID_AXES], uint32_t width, uint32_t height, uint32_t bands);

/* The i-th float of these words. */
float grid_get(const double *words, size_t i);

/* The weights that pixels are made with: lattice.taps * lattice.stride, of tap t and phase p at
 * t * stride + p. See struct lattice_span. */
void grid_weights(const struct grid_axis *axis, double *weights);

#endif
