/* The work of a filter on the samples of one band, in the form for kernels. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "filters/lattice.h"
#include "image/image.h"
#include "image/resampling.h"

enum operation_kind {
#define OPERATION(symbol, ...) OPERATION_##symbol,
#include "filters/operations.def"
	OPERATIONS
};

enum gradient_output { GRADIENT_MAGNITUDE, GRADIENT_X, GRADIENT_Y, GRADIENT_DIRECTION };

/* The shape of a window: see kernels/element.h. */
enum element { ELEMENT_RECTANGLE, ELEMENT_ELLIPSE, ELEMENT_CROSS, ELEMENT_CIRCLE };

/* With e and d for the smallest and the largest sample in an element: d(e), e(d), in - d(e), e(d) -
 * in, d - e. They apply to the image with its border around it, so d(e) is nowhere above the
 * image. */
enum morphology {
	MORPHOLOGY_OPEN,
	MORPHOLOGY_CLOSE,
	MORPHOLOGY_TOPHAT,
	MORPHOLOGY_BLACKHAT,
	MORPHOLOGY_GRADIENT,
};

/* OPERATION_CURVE; values are shares of full scale. Gain and bias are separate for each band. With
 * an exponent other than 1 low is not below 0. */
struct curve {
	double gain[BANDS_MAX], bias[BANDS_MAX], low, high, exponent, scale, shift;
};

struct operation {
	enum operation_kind kind;
	uint32_t radius_x, radius_y;
	/* Colours are premultiplied by alpha, filtered, and divided by the filtered alpha;
	 * otherwise alpha is kept as it is. */
	bool smoothing;
	enum gradient_output output; /* OPERATION_GRADIENT */
	enum element element;        /* EXTREME, MORPHOLOGY, RANK */
	bool largest;                /* OPERATION_EXTREME */
	/* OPERATION_MORPHOLOGY; all but the gradient reach two radii of the element. */
	enum morphology morphology;
	uint32_t rank; /* OPERATION_RANK: from 0 for the smallest */
	/* Colours are treated differently, or mixed; alpha is kept unless makes_alpha. */
	bool by_band, makes_alpha;
	uint32_t tables, entries; /* LUT, CLAHE: of how many entries each */
	uint32_t tiles;           /* CLAHE: across and down, each with as many tables */
	/* Added to the result, in pixel values; with signed_output also the type's midpoint. */
	double offset;
	bool signed_output;
	/* Separable: row (2 radius_x + 1), then column (2 radius_y + 1). Matrix: row after row.
	 * Gradient: smooth (3). Lut: table after table. Mix: row after row. Scale is already
	 * divided out. Owned; operation_fini() frees it. */
	double *coefficients;
	/* For separable and unsharp, if the stride is not 0: the device computes a Gaussian of this
	 * sigma on this lattice instead of using the coefficients, which are truncated. */
	struct lattice lattice;
	double sigma;
	double space, range;     /* OPERATION_BILATERAL: both negative; range for full scale 1 */
	double amount;           /* OPERATION_UNSHARP */
	double threshold;        /* UNSHARP, LOCAL_THRESHOLD: in shares of full scale */
	double limit[BANDS_MAX]; /* THRESHOLD: of each band, likewise */
	double low, high;        /* CANNY: likewise */
	/* RESIZE: set by those who know the image. */
	struct resizing across, down;
	/* Words that describe an image of this size, in the middle of the image to filter. EDGES:
	 * its bits (see edges.h); CLAHE: its tables (see counts_clahe()), tile after tile for each
	 * colour. They belong to the chain, which must outlive the operation. */
	const double *plane;
	size_t plane_words;
	uint32_t plane_width, plane_height;
	struct curve curve;
	/* Sum of absolute coefficients: the largest factor by which a value can be enlarged. */
	double gain;
};

const char *operation_name(enum operation_kind kind);

/* Returns the operations whose kernels do this one, its own and another one's, as bits. */
uint32_t operation_kernels(enum operation_kind kind);

/* Returns true for an alpha-weighted blur with a last step that compares with it; alpha is kept. */
bool operation_compares(enum operation_kind kind);

/* Multiply-adds a sample of one with these radii. */
double operation_terms(enum operation_kind kind, uint32_t radius_x, uint32_t radius_y);

/* Returns one of the two extremes of an OPERATION_MORPHOLOGY; it has no coefficients. */
struct operation operation_extreme(const struct operation *morphology, bool largest);

/* Returns true if a result depends on its sample alone: CURVE, LUT, THRESHOLD. */
bool operation_is_of_samples(enum operation_kind kind);

/* Applies such an operation to a pixel that is an integer from 0 to `full`. */
double operation_pixel(const struct operation *op, uint32_t band, double pixel, double full);

/* Combines such operations, applied in turn to integers from 0 to `full`, into one OPERATION_LUT
 * with an entry for each. Results are rounded in between, as pixels are. ERR_MEMORY. */
enum error operation_tabulate(const struct operation *operations, uint32_t count, uint32_t full,
                              struct operation *table) MUST_CHECK;

size_t operation_coefficients(const struct operation *operation);

/* Gives an operation whose kind and radii are set its coefficients, all 0. ERR_MEMORY. */
enum error operation_init(struct operation *operation) MUST_CHECK;
/* A copy with coefficients of its own. ERR_MEMORY. */
enum error operation_copy(const struct operation *from, struct operation *to) MUST_CHECK;
void operation_fini(struct operation *operation);
