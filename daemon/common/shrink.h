/* From an image's rows, as they come, to the points of a grid (grid.h), in double precision. What
 * lies outside the image is no row: a pixel that a border rule also puts there counts for more. */
#ifndef COMMON_SHRINK_H
#define COMMON_SHRINK_H

#include <stdint.h>

#include "common/error.h"
#include "common/filters.h"
#include "common/grid.h"
#include "common/image.h"

/* What the samples are before they are blurred. */
enum shrink_form {
	SHRINK_PLAIN,
	SHRINK_WEIGHTED, /* colours are multiplied by alpha, the last band */
	SHRINK_YCC,      /* the first three bands are YCbCr of BT.601, full range */
};

/* The form in which these channels of an image are blurred. */
enum shrink_form shrink_form(const struct image *image, enum channels channels);

struct shrink;

/* Begins with an image that has no rows yet. BORDER_CROP counts as BORDER_REPLICATE: what depends
 * on it is cropped. border_pixel: a value for each band, for BORDER_CONSTANT. ERR_MEMORY. */
enum error shrink_new(const double sigma[GRID_AXES], const struct image *image,
                      enum shrink_form form, enum border border,
                      const double border_pixel[BANDS_MAX], struct shrink **shrink) MUST_CHECK;
void shrink_free(struct shrink **shrink);

/* Bytes that it needs, less a few rows of the image. */
uint64_t shrink_size(const double sigma[GRID_AXES], const struct image *image);

/* Adds the image's next row: its pixels. */
void shrink_row(struct shrink *shrink, const void *pixels);

/* After the last row: blurs the points, and writes them as grid_words() words. */
void shrink_end(struct shrink *shrink, double *words);

#endif
