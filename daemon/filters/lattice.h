/* Computes a Gaussian of large sigma on a lattice of every stride-th row and column.
 *
 * The image is smoothed by a spline and kept at the lattice points (shrink), filtered there, and
 * the same spline makes pixels from the points again (grow). The points lie at multiples of the
 * stride in the image, so that tiles agree about them. */
#pragma once

#include <stdint.h>

/* Above this sigma, a Gaussian is computed on a lattice. */
#define LATTICE_SIGMA 8.0

/* The guarantee: no result differs from the untruncated Gaussian's by more than this share of the
 * range of values in its window (docs/benchmarks.md has the table). */
#define LATTICE_ERROR 6e-6

enum {
	LATTICE_STRIDE_MAX = 8,
	LATTICE_TAPS_MAX = 6,
	LATTICE_SPLINE_MAX = 6 * (LATTICE_STRIDE_MAX - 1) + 1,
	LATTICE_RADIUS_MAX = 64, /* radius of the filter on the lattice */
};

struct lattice {
	uint32_t stride; /* pixels from point to point; 0: there is no lattice */
	uint32_t half;   /* the spline reaches from -half to half pixels */
	uint32_t taps;   /* points that a pixel is made from */
	uint32_t lead;   /* they are at most half + lead pixels after it */
	uint32_t radius; /* radius of the filter between the points, in points */
	uint32_t reach;  /* with all steps together, in pixels */
};

/* Returns the lattice for a sigma; for a sigma up to LATTICE_SIGMA, none. */
struct lattice lattice_for(double sigma);

/* The spline: 2 half + 1 weights, of sum 1. */
void lattice_spline(const struct lattice *lattice, double *spline);

/* Sets the filter on the lattice, 2 radius + 1 weights of sum 1: the Gaussian less both splines. */
void lattice_filter(const struct lattice *lattice, double sigma, double *filter);

/* Sets the weights of a pixel's `taps` points, for each phase (see lattice_span); sums are 1. */
void lattice_grow(const struct lattice *lattice,
                  double weight[LATTICE_TAPS_MAX][LATTICE_STRIDE_MAX]);

/* The points from which a row (or column) of pixels is made. */
struct lattice_span {
	int32_t first;  /* point i is at pixel i * stride */
	uint32_t count; /* points */
	/* Pixel p: points from (p + phase) / stride on, weights of phase (p + phase) % stride. */
	uint32_t phase;
};

struct lattice_span lattice_span(const struct lattice *lattice, int32_t first_pixel,
                                 uint32_t pixels);
