/* Operations in double precision, the canvases to which they are applied, and their rows. */
#pragma once

#include "base/vectorised.h"
#include "filters/filters.h"
#include "image/image.h"

/* ---- rows.c: canvases, which are regions of an image in double precision, with the slack of each
 * sample (see reference.h); and the loops along their rows in which the reference spends its time,
 * compiled for each generation of vectors. A sample's result does not depend on its place in the
 * row. No result may overlap what it is made from ---- */

/* A rectangle in pixels of the whole image; it may reach outside the image. */
struct region {
	int x, y;
	uint32_t width, height;
};

/* A region's samples, interleaved, as pixel values, and the slack of each. Arrays of
 * canvas_samples(); owned. */
struct canvas {
	struct region at;
	uint32_t bands;
	bool exact; /* slack is 0 everywhere */
	double *value, *slack;
};

/* A slack that allows any float32, but is finite, so that it can be multiplied by a weight of 0. */
#define SLACK_UNLIMITED 1e60

/* Errors as shares of the magnitudes' sum: guaranteed for floats, and float32 sums' actual loss. */
#define FLOAT_TOLERANCE 1e-5
#define FLOAT_NOISE     1e-6

/* Allocates a canvas of samples and slacks 0. False without memory; canvas_fini() even then. */
bool canvas_init(struct canvas *canvas, const struct region *at, uint32_t bands) MUST_CHECK;
void canvas_fini(struct canvas *canvas);

/* The index of a pixel's first sample in the canvas, in pixels of the whole image. */
size_t canvas_index(const struct canvas *canvas, int x, int y);
size_t canvas_samples(const struct canvas *canvas);

/* Reads samples of a type; writes values that the type can hold. */
void rows_load(double *to, const void *from, enum pixel_type type, size_t count);
void rows_store(void *to, const double *from, enum pixel_type type, size_t count);

/* Each result is the sum of samples at these offsets times their weights, added in this order. */
void rows_sum(double *to, size_t count, const double *from, const ptrdiff_t *offset,
              const double *weight, size_t taps);

/* The following sums make this many samples, or pixels, of a row at a time. */
enum { ROWS_COLUMNS = 16, ROWS_PIXELS = 64 };

/* Sums along columns: each of these rows, of ROWS_COLUMNS samples, is made from as many rows as
 * there are weights, an odd number, starting at the row with its own number. Pitches are in
 * samples; the number of rows is a multiple of 4. */
void rows_sum_down(double *to, size_t to_pitch, size_t rows, const double *from, size_t pitch,
                   const double *weight, size_t taps);

/* Sums along a row, of samples `step` apart, starting at each result's own place. Whole ROWS_PIXELS
 * pixels of `step` samples are made, so there may be more results than `count`. */
void rows_sum_along(double *to, size_t count, const double *from, size_t step, const double *weight,
                    size_t taps);

/* Makes the larger of two samples each, or the smaller; NaN counts as larger than all numbers. `to`
 * may be one of the sources. */
void rows_extreme(double *to, const double *a, const double *b, bool largest, size_t count);

/* Magnitudes, 0 where a sample is not finite. */
void rows_magnitude(double *to, const double *from, size_t count);

/* ---- apply.c, bilateral.c, canny.c, lookup.c ---- */

/* The range and rounding of results, and the part of alpha. */
struct scale {
	const struct image *image; /* the whole one */
	double full;               /* full scale of the image's type */
	bool integers; /* the image's type is an integer: directions span its range, not radians */
	/* Results are rounded to integers after each operation, which allows half a count. */
	bool whole;
	/* The last band is alpha and weights the others; where filtered alpha is 0 or less, colours
	 * are 0 (if the operation compares: unchanged). */
	bool alpha_weighted;
};

/* Applies an operation, without offset and rounding. `in` extends beyond `out` by at least the
 * operation's radius, and has as many bands. Only smoothing and comparing operations may be
 * alpha-weighted. False without memory. */
typedef bool operation_apply(const struct operation *operation, const struct scale *scale,
                             const struct canvas *in, struct canvas *out);
operation_apply operations_apply MUST_CHECK;

/* Applies a bilateral filter, without the slack of float arithmetic. */
operation_apply bilateral_apply MUST_CHECK;

/* Finds the edges of canny: full scale for an edge, half of it for a possible edge, else 0. The
 * slack is full scale if the rounding of another right computation decides between these. */
operation_apply canny_apply MUST_CHECK;

/* Mixes the tables of the tiles around each pixel. */
operation_apply lookup_clahe MUST_CHECK;

/* One sample of a canvas. */
struct sample {
	double value, slack;
};

/* Looks a band's sample up in the operation's table. */
struct sample lookup_lut(const struct operation *operation, const struct scale *scale,
                         uint32_t band, const struct sample *in);
