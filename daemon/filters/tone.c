/* Filters of single pixels: curves, tables and thresholds of a sample, and mixtures of colours. */
#include <math.h>
#include <string.h>

#include "filters/filters.h"

/* Sets each band's number from a row or a column, or the single one or the default for all. Returns
 * true for several. */
static bool spread(const struct numbers *n, const double *coefficients, double default_,
                   double value[BANDS_MAX])
{
	const uint32_t count = n->width * n->height;

	for (uint32_t b = 0; b < BANDS_MAX; b++)
		value[b] = count ? coefficients[n->first + (b < count ? b : count - 1)] : default_;
	return count > 1;
}

/* Sets a curve of one gain and bias for all bands. */
static void set_curve(struct operation *op, double gain, double bias, const struct curve *curve)
{
	op->curve = *curve;
	for (int b = 0; b < BANDS_MAX; b++) {
		op->curve.gain[b] = gain;
		op->curve.bias[b] = bias;
	}
	op->gain = fabs(gain);
}

static void lower_gamma(const struct filter_call *call, struct operation *op)
{
	const double exponent = 1 / call->value[GAMMA_GAMMA];

	set_curve(op, 1, 0, &(struct curve){.high = INFINITY, .exponent = exponent, .scale = 1});
}

const struct filter_row filter_of_GAMMA = {.lower = lower_gamma};

static enum error check_levels(const struct filter_call *call, const double *,
                               struct problem *problem)
{
	/* Floats must be able to stretch the range. */
	if (call->value[LEVELS_WHITE] - call->value[LEVELS_BLACK] >= 0.01 - 1e-9)
		return ERR_OK;
	return filter_refuse(problem, "white", "", "expected at least black + 0.01, which is %g",
	                     call->value[LEVELS_BLACK] + 0.01);
}

static void lower_levels(const struct filter_call *call, struct operation *op)
{
	const double *v = call->value, gain = 1 / (v[LEVELS_WHITE] - v[LEVELS_BLACK]);

	set_curve(op, gain, -v[LEVELS_BLACK] * gain,
	          &(struct curve){.high = 1, .exponent = 1 / v[LEVELS_GAMMA], .scale = 1});
}

const struct filter_row filter_of_LEVELS = {.check = check_levels, .lower = lower_levels};

static void lower_invert(const struct filter_call *, struct operation *op)
{
	set_curve(op, 1, 0,
	          &(struct curve){
	              .low = -INFINITY, .high = INFINITY, .exponent = 1, .scale = -1, .shift = 1});
}

const struct filter_row filter_of_INVERT = {.lower = lower_invert};

static enum error check_linear(const struct filter_call *call, const double *,
                               struct problem *problem)
{
	static const char expected[] = "expected one number, or one for each colour, as in "
	                               "1.2,1,0.9; gain and bias have as many";
	const struct numbers *gain = &call->numbers[LINEAR_GAIN],
	                     *bias = &call->numbers[LINEAR_BIAS];

	if (gain->height > 1 || gain->width > BANDS_MAX)
		return filter_refuse(problem, "gain", "", "%s", expected);
	if (bias->height > 1 || bias->width > BANDS_MAX ||
	    (gain->width > 1 && bias->width > 1 && gain->width != bias->width))
		return filter_refuse(problem, "bias", "", "%s", expected);
	return ERR_OK;
}

static void lower_linear(const struct filter_call *call, const double *coefficients,
                         struct operation *op)
{
	struct curve *c = &op->curve;

	*c = (struct curve){.low = -INFINITY, .high = INFINITY, .exponent = 1, .scale = 1};
	op->by_band =
	    spread(&call->numbers[LINEAR_GAIN], coefficients, call->value[LINEAR_GAIN], c->gain);
	op->by_band |=
	    spread(&call->numbers[LINEAR_BIAS], coefficients, call->value[LINEAR_BIAS], c->bias);
	op->gain = 0;
	for (int b = 0; b < BANDS_MAX; b++)
		op->gain = fmax(op->gain, fabs(c->gain[b]));
}

const struct filter_row filter_of_LINEAR = {.check = check_linear,
                                            .by_colour = 1u << LINEAR_GAIN | 1u << LINEAR_BIAS,
                                            .lower_numbers = lower_linear};

/* Entries of the table of lines through points: 16 for each value of a byte, whose results
 * therefore equal those of the lines. */
enum { POINTS_ENTRIES = 16 * 255 + 1 };

static enum error check_lut(const struct filter_call *call, const double *coefficients,
                            struct problem *problem)
{
	const struct numbers *table = &call->numbers[LUT_TABLE],
	                     *points = &call->numbers[LUT_POINTS];
	const double *entry = coefficients + table->first, *point = coefficients + points->first;
	const double max = call->value[LUT_MAX];

	if (!points->width == !table->width)
		return filter_refuse(problem, points->width ? "points" : "table", "",
		                     "expected either a table, of 256 numbers from 0 to 255, say, "
		                     "or points, as in 0,0;64,40;255,255");
	if (points->width &&
	    (points->width != 2 || points->height < 2 || points->height > LUT_POINTS_MAX))
		return filter_refuse(
		    problem, "points", "",
		    "expected 2 to 64 rows of an input and its result, as in 0,0;64,40;255,255");
	if (table->width &&
	    (table->width < 2 || table->width > LUT_ENTRIES_MAX || table->height > BANDS_MAX))
		return filter_refuse(
		    problem, "table", "",
		    "expected 2 to 4096 numbers, in one row or in one for each colour");
	for (uint32_t i = 0; i < points->height; i++, point += 2)
		if (point[0] > max || point[1] > max || (i && point[0] <= point[-2]))
			return filter_refuse(problem, "points", "",
			                     "expected inputs that rise, and nothing above max");
	for (uint32_t i = 0; i < table->width * table->height; i++)
		if (entry[i] > max)
			return filter_refuse(problem, "table", "",
			                     "expected numbers of at most max");
	return ERR_OK;
}

static void size_lut(const struct filter_call *call, struct operation *op)
{
	const struct numbers *table = &call->numbers[LUT_TABLE];

	op->tables = table->width ? table->height : 1;
	op->entries = table->width ? table->width : POINTS_ENTRIES;
}

/* Returns the value at x of the lines through points (x, y); before the first and after the last
 * point, that point's y. */
static double line_at(const double *points, uint32_t count, double x)
{
	uint32_t i = 1;

	if (x <= points[0])
		return points[1];
	while (i < count && points[2 * i] < x)
		i++;
	if (i == count)
		return points[2 * count - 1];

	const double *a = points + 2 * (size_t)i - 2, *b = a + 2;

	return a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]);
}

static void lower_lut(const struct filter_call *call, const double *coefficients,
                      struct operation *op)
{
	const struct numbers *table = &call->numbers[LUT_TABLE];
	const struct numbers *points = &call->numbers[LUT_POINTS];
	const double max = call->value[LUT_MAX];

	for (uint32_t i = 0; i < op->entries * op->tables; i++)
		op->coefficients[i] =
		    (table->width ? coefficients[table->first + i]
		                  : line_at(coefficients + points->first, points->height,
		                            max * i / (op->entries - 1))) /
		    max;
	op->by_band = op->tables > 1;
	op->gain = op->entries - 1;
}

const struct filter_row filter_of_LUT = {.check = check_lut,
                                         .by_colour = 1u << LUT_TABLE,
                                         .in_rows = true,
                                         .size = size_lut,
                                         .lower_numbers = lower_lut};

static enum gather equalize_gathers(const struct filter_call *call)
{
	return call->value[EQUALIZE_METHOD] == EQUALIZE_BY_CLAHE ? GATHER_TILES : GATHER_TABLE;
}

static enum operation_kind equalize_kind(const struct filter_call *call)
{
	return equalize_gathers(call) == GATHER_TILES ? OPERATION_CLAHE : OPERATION_LUT;
}

static enum error check_equalize(const struct filter_call *call, const double *,
                                 struct problem *problem)
{
	const char *excess = !isnan(call->value[EQUALIZE_TILES])  ? "tiles"
	                     : !isnan(call->value[EQUALIZE_CLIP]) ? "clip"
	                                                          : NULL;

	if (!excess || call->value[EQUALIZE_METHOD] == EQUALIZE_BY_CLAHE)
		return ERR_OK;
	return filter_refuse(problem, excess, "",
	                     "equalize takes tiles and clip with method=clahe only");
}

/* Until data are gathered, a table that changes nothing, or none. */
static void size_equalize(const struct filter_call *call, struct operation *op)
{
	const struct numbers *n = &call->gathered;

	op->tables = n->width ? n->height : 1;
	op->entries = n->width ? n->width : 2;
	if (op->kind != OPERATION_CLAHE)
		return;
	op->tiles = filter_gathering(call).tiles;
	op->entries = n->width / (op->tiles * op->tiles) == clahe_words(256) ? 256 : COUNTS_MAX;
}

static void lower_equalize(const struct filter_call *call, const double *coefficients,
                           struct operation *op)
{
	op->by_band = op->tables > 1;
	op->gain = op->entries - 1.0;
	if (op->kind == OPERATION_LUT)
		op->coefficients[op->entries - 1] = 1;
	if (op->kind == OPERATION_LUT && call->gathered.width)
		memcpy(op->coefficients, coefficients + call->gathered.first,
		       (size_t)op->entries * op->tables * sizeof *coefficients);
	if (op->kind == OPERATION_CLAHE && call->gathered.width)
		filter_set_plane(call, coefficients, op);
}

const struct filter_row filter_of_EQUALIZE = {.kind = equalize_kind,
                                              .also = 1u << OPERATION_CLAHE,
                                              .check = check_equalize,
                                              .gathers = equalize_gathers,
                                              .size = size_equalize,
                                              .lower_numbers = lower_equalize};

static bool is_local(const struct filter_call *call)
{
	return call->value[THRESHOLD_METHOD] == THRESHOLD_BY_MEAN ||
	       call->value[THRESHOLD_METHOD] == THRESHOLD_BY_GAUSSIAN;
}

static enum gather threshold_gathers(const struct filter_call *call)
{
	return call->value[THRESHOLD_METHOD] == THRESHOLD_BY_OTSU ? GATHER_THRESHOLD : GATHER_NONE;
}

static void threshold_radius(const struct filter_call *call, uint32_t *x, uint32_t *y)
{
	const double size = call->value[THRESHOLD_SIZE];

	*x = *y = !is_local(call) ? 0 : isnan(size) ? 5 : ((uint32_t)size - 1) / 2;
}

static enum operation_kind threshold_kind(const struct filter_call *call)
{
	return is_local(call) ? OPERATION_LOCAL_THRESHOLD : OPERATION_THRESHOLD;
}

static enum error check_threshold(const struct filter_call *call, const double *,
                                  struct problem *problem)
{
	const struct numbers *value = &call->numbers[THRESHOLD_VALUE];
	const bool by_value = call->value[THRESHOLD_METHOD] == THRESHOLD_BY_VALUE;
	const bool local = is_local(call);
	const char *excess = !local && !isnan(call->value[THRESHOLD_SIZE])     ? "size"
	                     : !local && !isnan(call->value[THRESHOLD_OFFSET]) ? "offset"
	                     : !by_value && value->width                       ? "value"
	                                                                       : NULL;

	if (value->height > 1 || value->width > BANDS_MAX)
		return filter_refuse(
		    problem, "value", "",
		    "expected one number, or one for each colour, as in 0.3,0.5,0.4");
	if (!excess)
		return ERR_OK;
	return filter_refuse(problem, excess, "",
	                     "threshold takes value with method=value, which is the default, size "
	                     "and offset with mean and gaussian, and none of them with otsu");
}

static void lower_threshold(const struct filter_call *call, const double *coefficients,
                            struct operation *op)
{
	const double offset = call->value[THRESHOLD_OFFSET];
	double sigma;

	/* Not gathered yet: the default. */
	op->by_band =
	    spread(threshold_gathers(call) ? &call->gathered : &call->numbers[THRESHOLD_VALUE],
	           coefficients, call->value[THRESHOLD_VALUE], op->limit);
	if (!is_local(call))
		return;
	op->threshold = isnan(offset) ? 0 : -offset;
	sigma = call->value[THRESHOLD_METHOD] == THRESHOLD_BY_MEAN
	            ? INFINITY
	            : filter_gaussian_sigma(op->radius_x);
	filter_blur(op, sigma, sigma);
}

const struct filter_row filter_of_THRESHOLD = {.radius = threshold_radius,
                                               .kind = threshold_kind,
                                               .also = 1u << OPERATION_LOCAL_THRESHOLD |
                                                       1u << OPERATION_SEPARABLE,
                                               .check = check_threshold,
                                               .gathers = threshold_gathers,
                                               .by_colour = 1u << THRESHOLD_VALUE,
                                               .lower_numbers = lower_threshold};

static void lower_grayscale(const struct filter_call *call, struct operation *op)
{
	static const double weights[3][3] = {
	    {0.299, 0.587, 0.114}, {0.2126, 0.7152, 0.0722}, {1.0 / 3, 1.0 / 3, 1.0 / 3}};
	const double *of = weights[(size_t)call->value[GRAYSCALE_WEIGHTS]];

	for (size_t i = 0; i < 3; i++)
		memcpy(op->coefficients + i * (BANDS_MAX + 1), of, 3 * sizeof *of);
	op->by_band = true;
}

const struct filter_row filter_of_GRAYSCALE = {
    .mixes = true, .takes_grey = true, .lower = lower_grayscale};

static bool makes_alpha(const struct filter_call *call)
{
	return call->numbers[COLORMATRIX_MATRIX].height == BANDS_MAX;
}

static enum error check_colormatrix(const struct filter_call *call, const double *,
                                    struct problem *problem)
{
	const struct numbers *n = &call->numbers[COLORMATRIX_MATRIX];

	if ((n->width == 4 && n->height == 3) || (n->width == 5 && n->height == 4))
		return ERR_OK;
	return filter_refuse(
	    problem, "matrix", "",
	    "expected 3 rows of 4 numbers, or 4 of 5, as in 1.1,0,0,0;0,1,0,0;0,0,0.9,0");
}

static void lower_colormatrix(const struct filter_call *call, const double *coefficients,
                              struct operation *op)
{
	const struct numbers *n = &call->numbers[COLORMATRIX_MATRIX];

	op->by_band = true;
	op->makes_alpha = makes_alpha(call);
	op->gain = 0;
	for (uint32_t i = 0; i < n->height; i++) {
		const double *from = coefficients + n->first + (size_t)i * n->width;
		double *to = op->coefficients + (size_t)i * (BANDS_MAX + 1);

		memcpy(to, from, (n->width - 1) * sizeof *to);
		to[BANDS_MAX] = from[n->width - 1];
		op->gain = fmax(op->gain, fabs(to[0]) + fabs(to[1]) + fabs(to[2]) + fabs(to[3]));
	}
}

const struct filter_row filter_of_COLORMATRIX = {.check = check_colormatrix,
                                                 .mixes = true,
                                                 .makes_alpha = makes_alpha,
                                                 .lower_numbers = lower_colormatrix};
