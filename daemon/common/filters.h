/* The filters: their table, and what each comes to in arithmetic. */
#ifndef COMMON_FILTERS_H
#define COMMON_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/image.h"
#include "common/lattice.h"

enum filter {
#define FILTER(symbol, name, text) FILTER_##symbol,
#define PARAMETER(...)
#include "common/filters.def"
#undef FILTER
#undef PARAMETER
	FILTERS
};

enum parameter_type {
	PARAMETER_NUMBER,
	PARAMETER_INTEGER,
	PARAMETER_ODD,
	PARAMETER_CHOICE,
	PARAMETER_MATRIX,
};

struct parameter {
	enum filter filter;
	const char *name;
	enum parameter_type type;
	double least, most, standard; /* standard: the default, NAN if there is none */
	const char *unit;             /* of a choice: the words, separated by '|' */
	const char *text;
};

enum { FILTER_PARAMETERS_MAX = 4, MATRIX_SIDE_MAX = 63 };

/* Which samples of a pixel a filter changes; the others are kept. LUMA and CHROMA are those of the
 * YCbCr of BT.601, full range. */
enum channels {
	CHANNELS_ALL,
	CHANNELS_COLOR, /* all but alpha */
	CHANNELS_ALPHA,
	CHANNELS_RED, /* the first band; of a grey image the only one */
	CHANNELS_GREEN,
	CHANNELS_BLUE,
	CHANNELS_LUMA,
	CHANNELS_CHROMA,
	CHANNELS
};

/* One use of a filter: the values in the order of its PARAMETER rows (NAN: not given and without
 * default; a matrix has its place in the chain's coefficients instead, see chain.h). */
struct filter_call {
	uint32_t filter;   /* enum filter */
	uint32_t channels; /* enum channels */
	uint32_t matrix_width, matrix_height;
	uint32_t matrix_first; /* index of its first coefficient in the chain */
	double value[FILTER_PARAMETERS_MAX];
};

const char *channels_name(enum channels channels);
/* The channels of a name, or CHANNELS. */
enum channels channels_parse(const char *name);

const char *filter_name(enum filter filter);
const char *filter_text(enum filter filter);
/* The filter of a name, or FILTERS. */
enum filter filter_parse(const char *name);
/* Says of a name that is unknown which filter is near (by a third of its letters at most), or which
 * there are. Returns ERR_UNKNOWN_FILTER; ERR_BAD_PARAMETER of an empty name. */
enum error filter_unknown(const char *name, struct problem *problem) MUST_CHECK;

/* The i-th parameter of a filter, or NULL after the last. */
const struct parameter *filter_parameter(enum filter filter, size_t i);

/* What a filter does to the samples of one band: the forms that the kernels know. */
enum operation_kind {
	/* out = sum over j of column[j] * (sum over i of row[i] * in(x + i - rx, y + j - ry)) +
	   offset */
	OPERATION_SEPARABLE,
	/* out = sum over j, i of matrix[j][i] * in(x + i - rx, y + j - ry) + offset */
	OPERATION_MATRIX,
	/* gx = sum over j of smooth[j] * (in(x + 1, y + j - 1) - in(x - 1, y + j - 1)), gy its
	 * transpose; out = sqrt(gx² + gy²), gx, gy or atan2(gy, gx) */
	OPERATION_GRADIENT,
	/* out = sum of w in(x + i, y + j) / sum of w over i² + j² <= radius², with
	 * w = exp(space (i² + j²) + range e²) [times alpha there, for colour], e² the sum of the
	 * squared differences of the colour bands to those at (x, y) (Tomasi and Manduchi,
	 * "Bilateral Filtering for Gray and Color Images", 1998) */
	OPERATION_BILATERAL,
	/* g = separable, as above; d = in - g; out = |d| < threshold ? in : in + amount d */
	OPERATION_UNSHARP,
};

enum gradient_output { GRADIENT_MAGNITUDE, GRADIENT_X, GRADIENT_Y, GRADIENT_DIRECTION };

struct operation {
	enum operation_kind kind;
	uint32_t radius_x, radius_y;
	/* Alpha is premultiplied, filtered and divided by; else it is kept as it is. */
	bool smoothing;
	enum gradient_output output; /* OPERATION_GRADIENT */
	/* Added to the result, in pixel values; where signed_output, the type's midpoint is added.
	 */
	double offset;
	bool signed_output;
	/* Separable: row (2 radius_x + 1), then column (2 radius_y + 1). Matrix: row after row.
	 * Gradient: smooth (3). Scale is already divided out. Owned; operation_fini() frees it. */
	double *coefficients;
	/* Separable and unsharp, with a stride: what the device computes on a lattice instead, for
	 * a Gaussian of this sigma, of which the coefficients are all that is in reach. */
	struct lattice lattice;
	double sigma;
	double space, range;      /* OPERATION_BILATERAL: both negative; range for full scale 1 */
	double amount, threshold; /* OPERATION_UNSHARP; threshold in shares of full scale */
	/* Sum of the products of absolute coefficients: how much the operation can enlarge a value.
	 */
	double gain;
};

/* The radius of a call, without the work of filter_lower(). */
void filter_radius(const struct filter_call *call, uint32_t *radius_x, uint32_t *radius_y);

/* The lattice that a call is computed on; its stride is 0 if it is not. */
struct lattice filter_lattice(const struct filter_call *call);

/* Works out a call whose values are valid; coefficients: the chain's, for a matrix. A matrix of
 * rank 1 (to 1e-12 of its largest coefficient) becomes separable. Returns ERR_MEMORY if there is
 * none. */
enum error filter_lower(const struct filter_call *call, const double *coefficients,
                        struct operation *operation) MUST_CHECK;
void operation_fini(struct operation *operation);

#endif
