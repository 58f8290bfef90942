/* The loops along rows of samples in which the reference spends its time, compiled for each
 * generation of vectors. A sample's result does not depend on its place in the row. No result may
 * overlap what it is made from. */
#ifndef REFERENCE_ROWS_H
#define REFERENCE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vectorised.h"
#include "image/image.h"

/* Reads samples of a type; writes values that the type can hold. */
void rows_load(double *to, const void *from, enum pixel_type type, size_t count);
void rows_store(void *to, const double *from, enum pixel_type type, size_t count);

/* Each result is the sum of samples at these offsets times their weights, added in this order. */
void rows_sum(double *to, size_t count, const double *from, const ptrdiff_t *offset,
              const double *weight, size_t taps);

/* The following sums make so many samples, or pixels, of a row at a time. */
enum { ROWS_COLUMNS = 16, ROWS_PIXELS = 64 };

/* Sums along columns: each of these rows, of ROWS_COLUMNS samples, is made from as many rows as
 * there are weights, an odd number, from the one of its own number on. Pitches are in samples; the
 * number of rows is a multiple of 4. */
void rows_sum_down(double *to, size_t to_pitch, size_t rows, const double *from, size_t pitch,
                   const double *weight, size_t taps);

/* Sums along a row: of samples `step` apart, from each result's own place on. Whole ROWS_PIXELS
 * pixels of `step` samples are made, so there may be more results than `count`. */
void rows_sum_along(double *to, size_t count, const double *from, size_t step, const double *weight,
                    size_t taps);

/* The larger of two samples each, or the smaller; NaN counts as larger than all numbers. `to` may
 * be one of them. */
void rows_extreme(double *to, const double *a, const double *b, bool largest, size_t count);

/* Magnitudes, 0 where a sample is not finite. */
void rows_magnitude(double *to, const double *from, size_t count);

#endif
