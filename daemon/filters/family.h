/* The families of filters: what each filter is beyond its rows in filters.def. The file of its
 * family (smooth, matrix, gradient, order, tone, colour) has it, as a row of functions. */
#ifndef FILTERS_FAMILY_H
#define FILTERS_FAMILY_H

#include "filters/filters.h"

/* The functions get a call whose values are within the limits of their parameters. Any of them may
 * be NULL; coefficients: the chain's. */
struct filter_row {
	/* The window: its radius is the first number of these that a row has. */
	struct window {
		enum { RADIUS_IS, BY_RADIUS, BY_WIDTH, BY_SIGMA, BY_LATTICE } by;
		/* RADIUS_IS: the radius. BY_SIGMA: at so many sigma it is cut off; BY_WIDTH: so
		 * many windows, one after the other. */
		uint8_t times;
		uint8_t parameter; /* the index of radius, width or sigma */
	} window;
	/* Instead of `window`. */
	void (*radius)(const struct filter_call *call, uint32_t *x, uint32_t *y);
	/* The sigma of a Gaussian that is not cut off, which may be computed on a lattice; else 0.
	 * With BY_LATTICE the parameter. */
	double (*sigma)(const struct filter_call *call);

	/* Refuses values that do not go together, then numbers among the coefficients. */
	enum error (*check)(const struct filter_call *call, struct problem *problem);
	enum error (*check_numbers)(const struct filter_call *call, const double *coefficients,
	                            struct problem *problem);

	/* What the whole image must be known for; in calls of which this is true. */
	enum gather gathers;
	bool (*must_gather)(const struct filter_call *call);

	/* The number of colours for which the call itself has numbers, and the parameter of
	 * these. */
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
	/* Sets all that is not 0, or not 1: the gain. Then what follows from numbers among the
	 * coefficients. */
	void (*lower)(const struct filter_call *call, struct operation *op);
	void (*lower_numbers)(const struct filter_call *call, const double *coefficients,
	                      struct operation *op);
};

#define FILTER(symbol, ...) extern const struct filter_row filter_of_##symbol;
#define PARAMETER(...)
#include "filters/filters.def"
#undef FILTER
#undef PARAMETER

const struct filter_row *filter_row(enum filter filter);

/* The radius of a Gaussian given by sigma alone. */
uint32_t family_gaussian_radius(double sigma);
/* The sigma of a Gaussian given by size alone. */
double family_gaussian_sigma(double radius);
/* Sets row and column to Gaussians of sum 1; of sigma INFINITY: to means. */
void family_blur(struct operation *op, double sigma_x, double sigma_y);

/* The sigma that an image is blurred with before a canny looks for its edges; 0: it is not. */
double family_canny_sigma(const struct filter_call *call);

#endif
