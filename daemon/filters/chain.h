/* A chain of filters with its border rule: a request's filters, parsed and checked. It is plain
 * data without pointers, so it is sent to the workers unchanged, in a sealed memfd. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "filters/edges.h"
#include "filters/filters.h"
#include "filters/kernels.h"
#include "filters/regions.h"
#include "image/image.h"

/* Values of `variant` in a chain, besides enum kernel + 1. */
enum { VARIANT_ANY, VARIANT_REFERENCE = KERNELS + 1, VARIANT_GENERAL };

enum {
	CHAIN_FILTERS_MAX = 8,
	CHAIN_GATHERING_MAX = 2, /* filters that must know the whole image */
	/* Those of a request, and with what is gathered. */
	CHAIN_GIVEN_MAX = 4 * MATRIX_SIDE_MAX * MATRIX_SIDE_MAX + REGIONS_NUMBERS_MAX,
	CHAIN_COEFFICIENTS_MAX = CHAIN_GIVEN_MAX + CHAIN_GATHERING_MAX * GATHER_NUMBERS_MAX,
	/* Canny blurs, may make a luma before, and looks for edges. */
	CHAIN_CANNY_FILTERS = 3
};

struct chain {
	uint32_t count;  /* filters, at least 1 once chain_check() has passed */
	uint32_t border; /* enum border */
	/* For BORDER_CONSTANT: one value for all bands (alpha is opaque) or for each; none: 0. */
	uint32_t border_values;
	uint32_t coefficients_used;
	/* enum kernel + 1: used for the filters that this kernel supports; or VARIANT_… */
	uint32_t variant;
	uint32_t unused;
	struct regions regions; /* the result is written there; their numbers are coefficients */
	double border_value[BANDS_MAX];
	struct filter_call call[CHAIN_FILTERS_MAX];
	/* Those of calls and regions. With an image's edges there may be more, behind it. */
	double coefficient[CHAIN_COEFFICIENTS_MAX];
};

enum {
	CHAIN_SIZE_MAX = sizeof(struct chain) + CHAIN_GATHERING_MAX * GATHERED_MAX * sizeof(double)
};

/* Returns the bytes of the chain up to its last coefficient; only these need to be sent. */
size_t chain_size(const struct chain *chain);

/* Returns a copy of a complete chain from malloc(), with space for `more` coefficients; NULL
 * without memory. Nothing else may be added to it, and the struct must not be copied. */
struct chain *chain_copy(const struct chain *chain, uint32_t more) MUST_CHECK;

/* Empties the chain: no filter, border replicate. Does not touch the coefficients. */
void chain_init(struct chain *chain);

/* Appends a filter with its defaults. ERR_UNKNOWN_FILTER, or ERR_BAD_PARAMETER: full, no name. */
enum error chain_add_filter(struct chain *chain, const char *name,
                            struct problem *problem) MUST_CHECK;

/* Appends a filter with default parameters to a chain that has room for it. */
struct filter_call *chain_append(struct chain *chain, enum filter filter, enum channels channels);

/* Sets a parameter of the last filter from text. ERR_BAD_PARAMETER says what is expected. */
enum error chain_set_parameter(struct chain *chain, const char *name, const char *text,
                               struct problem *problem) MUST_CHECK;

/* True if the last filter has a parameter of this name. */
bool chain_knows_parameter(const struct chain *chain, const char *name);

/* Appends the filters of "NAME=key=value:key=value,NAME…" (spaces between a matrix's columns). */
enum error chain_parse(struct chain *chain, const char *text, struct problem *problem) MUST_CHECK;

/* Does the same for filters on these channels; parameter: that of the query with the text. */
enum error chain_parse_for(struct chain *chain, enum channels channels, const char *parameter,
                           const char *text, struct problem *problem) MUST_CHECK;

/* Sets the channels of all filters that the chain has so far. */
void chain_set_channels(struct chain *chain, enum channels channels);

/* Sets border_value from text ("0" or "255,0,0"). */
enum error chain_set_border_value(struct chain *chain, const char *text,
                                  struct problem *problem) MUST_CHECK;

/* Sets the regions; see regions_parse(). */
enum error chain_set_regions(struct chain *chain, const char *text,
                             struct problem *problem) MUST_CHECK;

/* The numbers of the regions' shapes. */
const double *chain_shapes(const struct chain *chain);

/* Checks the conditions on the whole chain: required parameters, and at least one filter. */
enum error chain_check(const struct chain *chain, struct problem *problem) MUST_CHECK;

/* The kernel that the chain's variant names, or KERNELS. */
enum kernel chain_kernel(const struct chain *chain);

/* True if a chain from another process is within all limits. */
bool chain_valid(const struct chain *chain);

/* Reads a chain from another process into a new block from malloc(), of chain_size() bytes or more,
 * so the struct must not be copied. ERR_INTERNAL unless it is valid; ERR_IO or ERR_MEMORY. */
enum error chain_take(int fd, struct chain **chain) MUST_CHECK;

/* True if a value is a share of the image's size, without which no more can be said of it all. */
bool chain_has_shares(const struct chain *chain);

/* Number of pages with gathered data of their own; 1 if all pages share it. */
uint32_t chain_pages(const struct chain *chain);

/* The index of the call that resizes; the number of calls if none does. */
uint32_t chain_resizing(const struct chain *chain);

/* The advice for a value that is too large, to be appended. */
const char *chain_advice(const struct parameter *parameter, double value);

/* The choices of resize's `fit`. */
enum { RESIZE_INSIDE, RESIZE_COVER, RESIZE_FILL };

/* Sums the radii of the calls from one on, up to but without `end`. */
void chain_radii(const struct chain *chain, uint32_t first, uint32_t end, uint32_t *sum_x,
                 uint32_t *sum_y);

/* The halo in pixels that is read around the image: the sum of the radii up to a resize. */
void chain_halo(const struct chain *chain, uint32_t *halo_x, uint32_t *halo_y);

/* Sets the constant outside the image for each band of an image. ERR_BAD_PARAMETER if the number of
 * values does not match the bands, or one is outside the type's range. */
enum error chain_border_pixel(const struct chain *chain, const struct image *image,
                              double pixel[BANDS_MAX], struct problem *problem) MUST_CHECK;
