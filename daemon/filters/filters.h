/* The filters: their table, and what each comes to in arithmetic. */
#ifndef FILTERS_FILTERS_H
#define FILTERS_FILTERS_H

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
	FILTER_PARAMETERS_MAX = 4,
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

/* Which samples of a pixel a filter changes; the others are kept. LUMA and CHROMA are those of the
 * YCbCr of BT.601, full range. Chains of several kinds of channels are one list, though parallel
 * ones would need a smaller halo: plan, reference and tests then know only ordered calls. */
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

/* Rows of numbers among a chain's coefficients; width and height are 0 if they are not given. */
struct numbers {
	uint32_t first; /* index of the first */
	uint32_t width, height;
};

/* One use of a filter: the values in the order of its PARAMETER rows (NAN: not given and without
 * default), of a MATRIX and of NUMBERS their place in the chain. */
struct filter_call {
	uint32_t filter;   /* enum filter */
	uint32_t channels; /* enum channels */
	struct numbers numbers[FILTER_PARAMETERS_MAX];
	/* The whole image's, if the filter must know it; for GATHER_EDGES: the image's size. */
	struct numbers gathered;
	uint32_t more_pages; /* further pages, whose gathered numbers follow, page after page */
	uint32_t shares;     /* bit i: value[i] is a percentage of the image's shorter side */
	uint32_t unused;
	double value[FILTER_PARAMETERS_MAX];
};

/* A filter beyond filters.def: filter_of_SYMBOL in the file of its family (smooth, matrix,
 * gradient, order, tone). Its functions, any of which may be NULL, get a call whose values are
 * within the limits of their parameters; coefficients: the chain's. */
struct filter_row {
	struct {
		enum { RADIUS_IS, BY_RADIUS, BY_WIDTH, BY_SIGMA, BY_LATTICE } by;
		/* The radius; BY_WIDTH: of so many windows; BY_SIGMA: so many sigma. */
		uint8_t number;
		uint8_t parameter; /* the index of that radius, width or sigma */
	} window;
	/* Instead of `window`. */
	void (*radius)(const struct filter_call *call, uint32_t *x, uint32_t *y);
	/* The sigma of a Gaussian that is not cut off, also without BY_LATTICE; else 0. */
	double (*sigma)(const struct filter_call *call);

	/* Refuses values and coefficients that do not go together. */
	enum error (*check)(const struct filter_call *call, const double *coefficients,
	                    struct problem *problem);

	/* The knowledge of the whole image that calls need, or only those that must_gather(). */
	enum gather gathers;
	bool (*must_gather)(const struct filter_call *call);

	/* The colours that the call itself has numbers for, and the parameter of these. */
	uint32_t (*colours)(const struct filter_call *call);
	const char *by_colour;
	/* Each colour is made of red, green and blue; or grey alone of itself. */
	bool mixes, takes_grey;
	bool (*makes_alpha)(const struct filter_call *call);

	/* The operation of a call; NULL: that of filters.def. */
	enum operation_kind (*kind)(const struct filter_call *call);
	/* Operations, as bits, whose kernels do some calls besides that one's. */
	uint32_t also;
	/* Sets what the number of coefficients depends on, besides kind and radii. */
	void (*size)(const struct filter_call *call, struct operation *op);
	bool smoothing, signed_output;
	/* Sets what is not 0 (the gain: 1), then what is among the coefficients. */
	void (*lower)(const struct filter_call *call, struct operation *op);
	void (*lower_numbers)(const struct filter_call *call, const double *coefficients,
	                      struct operation *op);
};

#define FILTER(symbol, ...) extern const struct filter_row filter_of_##symbol;
#include "filters/filters.def"

const struct filter_row *filter_get(enum filter filter);

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

/* Says "NAME: " and what is expected of a value (printf-style). Returns ERR_BAD_PARAMETER. */
enum error filter_refuse(struct problem *problem, const char *name, const char *value,
                         const char *format, ...) __attribute__((format(printf, 4, 5))) MUST_CHECK;

/* The i-th parameter of a filter, or NULL after the last. */
const struct parameter *filter_parameter(enum filter filter, size_t i);

/* The kind of a parameter's value, or of its numbers. */
struct value_kind parameter_kind(const struct parameter *parameter);

/* True if a percentage of the image's shorter side may be given. */
bool parameter_takes_share(const struct parameter *parameter);

/* The radius of a call, without the work of filter_lower(). */
void filter_radius(const struct filter_call *call, uint32_t *radius_x, uint32_t *radius_y);

/* The lattice that a call is computed on; its stride is 0 if it is not. */
struct lattice filter_lattice(const struct filter_call *call);

/* The knowledge of the whole image that a call needs, whether it has it or not. */
enum gather filter_gathers(const struct filter_call *call);

/* The operation that a call is lowered to, unless its numbers allow another; predicts its cost. */
enum operation_kind filter_call_operation(const struct filter_call *call);

/* The operations whose kernels may support a filter, as bits. */
uint32_t filter_kernels(enum filter filter);

/* The count of numbers in `gathered` of this size, for a call that gathers. */
uint64_t filter_gathered_numbers(const struct filter_call *call, uint32_t width, uint32_t height);

/* The number of colours that a call has numbers for; 0 or 1 if it treats them alike. */
uint32_t filter_by_colour(const struct filter_call *call);

/* Works out a call whose values are valid; coefficients: the chain's. A matrix of rank 1 (to 1e-12
 * of its largest coefficient) becomes separable. ERR_MEMORY. */
enum error filter_lower(const struct filter_call *call, const double *coefficients,
                        struct operation *operation) MUST_CHECK;

/* The radius of a Gaussian given by sigma alone, and the sigma of one given by size alone. */
uint32_t filter_gaussian_radius(double sigma);
double filter_gaussian_sigma(double radius);
/* Sets row and column to Gaussians of sum 1; of sigma INFINITY: to means. */
void filter_blur(struct operation *op, double sigma_x, double sigma_y);
/* The sigma that an image is blurred with before a canny looks for its edges; 0: it is not. */
double filter_canny_sigma(const struct filter_call *call);

#endif
