/* The filters: their table, and the arithmetic that each becomes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/value.h"
#include "filters/gather.h"
#include "filters/operations.h"
#include "image/image.h"

enum filter {
#define FILTER(symbol, ...) FILTER_##symbol,
#include "filters/filters.def"
	FILTERS
};

enum parameter_type {
	PARAMETER_NUMBER,
	PARAMETER_INTEGER,
	PARAMETER_ODD,
	PARAMETER_CHOICE,
	PARAMETER_MATRIX,
	PARAMETER_NUMBERS,
};

struct parameter {
	enum filter filter;
	const char *name;
	enum parameter_type type;
	double min, max, default_; /* default_: NAN if there is none */
	const char *unit;          /* for a choice: its words, separated by '|' */
	const char *text;
};

enum {
	FILTER_PARAMETERS_MAX = 6,
	MATRIX_SIDE_MAX = 63,
	LUT_ENTRIES_MAX = 4096,
	LUT_POINTS_MAX = 64
};

/* The rows of parameters by their numbers in the table, and those of each filter from 0 on:
 * GAUSSIAN_SIGMA, GAUSSIAN_SIZE, BOX_SIZE, ... */
enum {
#define FILTER(symbol, ...)            FIRST_OF_##symbol, BEFORE_##symbol = FIRST_OF_##symbol - 1,
#define PARAMETER(filter, symbol, ...) ROW_OF_##filter##_##symbol,
#include "filters/filters.def"
};
enum {
#define PARAMETER(filter, symbol, ...)                                                             \
	filter##_##symbol = ROW_OF_##filter##_##symbol - FIRST_OF_##filter,
#include "filters/filters.def"
};

/* threshold's method, in the order of its choices. */
enum { THRESHOLD_BY_VALUE, THRESHOLD_BY_MEAN, THRESHOLD_BY_GAUSSIAN, THRESHOLD_BY_OTSU };
/* equalize's. */
enum { EQUALIZE_BY_ALL, EQUALIZE_BY_CLAHE };

/* The samples of a pixel that a filter changes; all others are kept. LUMA and CHROMA are those of
 * the YCbCr of BT.601, full range. Chains for different channels are one list, although parallel
 * ones would need a smaller halo: plan, reference and tests so handle ordered calls alone. */
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

/* Rows of numbers among a chain's coefficients; width and height are 0 if there are none. */
struct numbers {
	uint32_t first; /* index of the first */
	uint32_t width, height;
};

/* One use of a filter: the values in the order of its PARAMETER rows (NAN: neither given nor
 * default), and the positions in the chain of a MATRIX and of NUMBERS. */
struct filter_call {
	uint32_t filter;   /* enum filter */
	uint32_t channels; /* enum channels */
	struct numbers numbers[FILTER_PARAMETERS_MAX];
	/* The whole image's data, if the filter must know them: rows of words. */
	struct numbers gathered;
	uint32_t more_pages; /* further pages, whose gathered numbers follow, page after page */
	uint32_t shares;     /* bit i: value[i] is a percentage of the image's shorter side */
	uint32_t gathered_from[2]; /* the width and the height of the image that they are of */
	uint32_t unused;
	double value[FILTER_PARAMETERS_MAX];
};

/* The functions of a filter: filter_of_SYMBOL in the file of its family (smooth, matrix, gradient,
 * order, tone). Any of them may be NULL. They get a call whose values are within the limits of
 * their parameters; coefficients: the chain's. */
struct filter_row {
	struct {
		enum { RADIUS_IS, BY_VALUE, BY_WIDTH, BY_LATTICE } by;
		/* The radius; BY_VALUE: so many radii or sigmas; BY_WIDTH: of so many windows. */
		uint8_t number;
		uint8_t parameter; /* the index of that radius, sigma or width */
	} window;
	/* Instead of `window`. */
	void (*radius)(const struct filter_call *call, uint32_t *x, uint32_t *y);
	/* Returns the sigma of a Gaussian that is not cut off, also without BY_LATTICE; else 0. */
	double (*sigma)(const struct filter_call *call);

	/* Refuses values and coefficients that do not fit together. */
	enum error (*check)(const struct filter_call *call, const double *coefficients,
	                    struct problem *problem);

	/* Returns the data of the whole image that a call needs. */
	enum gather (*gathers)(const struct filter_call *call);

	/* The parameters, as bits, with a number for each colour; in_rows: with a row for each. */
	uint32_t by_colour;
	bool in_rows;
	/* Each colour is made from red, green and blue; grey from itself alone. */
	bool mixes, takes_grey;
	bool (*makes_alpha)(const struct filter_call *call);

	/* The operation of a call; NULL: that of filters.def. */
	enum operation_kind (*kind)(const struct filter_call *call);
	/* Further operations, as bits, whose kernels do some calls. */
	uint32_t also;
	/* Sets the members that determine the number of coefficients, besides kind and radii. */
	void (*size)(const struct filter_call *call, struct operation *op);
	bool smoothing, signed_output;
	/* Sets members that are not 0 (the gain: 1), then the coefficients. */
	void (*lower)(const struct filter_call *call, struct operation *op);
	void (*lower_numbers)(const struct filter_call *call, const double *coefficients,
	                      struct operation *op);
};

#define FILTER(symbol, ...) extern const struct filter_row filter_of_##symbol;
#include "filters/filters.def"

extern const struct known_filter {
	const char *name;
	enum operation_kind operation;
	const char *text;
	const struct filter_row *row;
} known_filters[FILTERS];

extern const char *const channel_names[CHANNELS];

/* The filter of a name, or FILTERS. */
enum filter filter_parse(const char *name);
/* Names the filter that is nearest to an unknown name (by a third of its letters at most), or lists
 * all. Returns ERR_UNKNOWN_FILTER; ERR_BAD_PARAMETER for an empty name. */
enum error filter_unknown(const char *name, struct problem *problem) MUST_CHECK;

/* Writes "NAME: " and the expectation of a value (printf-style). Returns ERR_BAD_PARAMETER. */
#define filter_refuse(problem, name, value, format, ...)                                           \
	bad_parameter(problem, name, value, "%s: " format, name, ##__VA_ARGS__)

/* Returns the i-th parameter of a filter, or NULL after the last. */
const struct parameter *filter_parameter(enum filter filter, size_t i);

/* Finds a filter's parameter of this name and its index; NULL if there is none. */
const struct parameter *filter_find_parameter(enum filter filter, const char *name, size_t *i);

/* Returns the kind of a parameter's value, or of its numbers. */
struct value_kind parameter_kind(const struct parameter *parameter);

/* True if a percentage of the image's shorter side may be given. */
bool parameter_takes_share(const struct parameter *parameter);

/* The radius of a call, without the work of filter_lower(). */
void filter_radius(const struct filter_call *call, uint32_t *radius_x, uint32_t *radius_y);

/* Returns the lattice on which a call is computed; its stride is 0 if there is none. */
struct lattice filter_lattice(const struct filter_call *call);

/* Returns the data of the whole image that a call needs, whether it has them or not. */
enum gather filter_gathers(const struct filter_call *call);

/* Returns the operation to which a call is usually lowered; for predictions of cost. */
enum operation_kind filter_call_operation(const struct filter_call *call);

/* Returns the operations whose kernels may support a filter, as bits. */
uint32_t filter_kernels(enum filter filter);

/* Returns the same with all that is to be known to gather them. */
struct gathering filter_gathering(const struct filter_call *call);

/* Sets the plane of an operation to the data that a call has. */
void filter_set_plane(const struct filter_call *call, const double *coefficients,
                      struct operation *op);

/* Returns the number of colours for which a call has numbers; 0 or 1 if it treats them alike. */
uint32_t filter_by_colour(const struct filter_call *call);

/* Lowers a call whose values are valid to an operation; coefficients: the chain's. A matrix of rank
 * 1 (to 1e-12 of its largest coefficient) becomes separable. ERR_MEMORY. */
enum error filter_lower(const struct filter_call *call, const double *coefficients,
                        struct operation *operation) MUST_CHECK;

/* Return a Gaussian's radius by sigma alone, and its sigma by size alone. */
uint32_t filter_gaussian_radius(double sigma);
double filter_gaussian_sigma(double radius);
/* Sets row and column to Gaussians with sum 1; sigma INFINITY means a mean. */
void filter_blur(struct operation *op, double sigma_x, double sigma_y);
/* Returns the sigma by which an image is blurred before canny finds its edges; 0: not at all. */
double filter_canny_sigma(const struct filter_call *call);
