/* The filters: lookups in filters.def, and the coefficients of each filter. */
#include "filters/filters.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "element.h"
#include "filters/edges.h"

static const struct {
	const char *name;
	enum operation_kind operation;
	const char *text;
} filters[FILTERS] = {
#define FILTER(symbol, name, operation, text) {name, OPERATION_##operation, text},
#define PARAMETER(...)
#include "filters/filters.def"
#undef FILTER
#undef PARAMETER
};

static const struct parameter parameters[] = {
#define FILTER(...)
#define PARAMETER(filter, symbol, name, type, min, max, default_, unit, text)                      \
	{FILTER_##filter, name, PARAMETER_##type, min, max, default_, unit, text},
#include "filters/filters.def"
#undef FILTER
#undef PARAMETER
};

#define FILTER(...)
#define PARAMETER(filter, symbol, ...)                                                             \
	_Static_assert((int)filter##_##symbol < (int)FILTER_PARAMETERS_MAX, "a call has room");
#include "filters/filters.def"
#undef FILTER
#undef PARAMETER

static const char *const channels[CHANNELS] = {
    [CHANNELS_ALL] = "all",   [CHANNELS_COLOR] = "color",   [CHANNELS_ALPHA] = "alpha",
    [CHANNELS_RED] = "red",   [CHANNELS_GREEN] = "green",   [CHANNELS_BLUE] = "blue",
    [CHANNELS_LUMA] = "luma", [CHANNELS_CHROMA] = "chroma",
};

const char *channels_name(enum channels which)
{
	return channels[which];
}

enum channels channels_parse(const char *name)
{
	enum channels which = 0;

	while (which < CHANNELS && strcmp(name, channels[which]))
		which++;
	return which;
}

const char *filter_name(enum filter filter)
{
	return filters[filter].name;
}

const char *filter_text(enum filter filter)
{
	return filters[filter].text;
}

enum operation_kind filter_operation(enum filter filter)
{
	return filters[filter].operation;
}

enum filter filter_parse(const char *name)
{
	enum filter filter = 0;

	while (filter < FILTERS && strcmp(name, filters[filter].name))
		filter++;
	return filter;
}

/* Levenshtein distance, of the first 31 characters. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[32], n = strnlen(b, 31);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; i < 31 && a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t change = diagonal + (a[i] != b[j]);
			size_t step = 1 + (row[j] < row[j + 1] ? row[j] : row[j + 1]);

			diagonal = row[j + 1];
			row[j + 1] = change < step ? change : step;
		}
	}
	return row[n];
}

/* The filter whose name is nearest, FILTERS if none is near. */
static enum filter nearest_filter(const char *name)
{
	enum filter nearest = FILTERS;
	size_t least = 32;

	for (enum filter f = 0; f < FILTERS; f++) {
		size_t distance = edit_distance(name, filters[f].name);

		if (distance < least && distance <= (strlen(filters[f].name) + 1) / 3) {
			nearest = f;
			least = distance;
		}
	}
	return nearest;
}

enum error filter_unknown(const char *name, struct problem *problem)
{
	enum filter near = nearest_filter(name);
	char list[352] = "";

	for (enum filter f = 0; f < FILTERS; f++)
		list_add(list, sizeof list, filters[f].name);
	if (!*name)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "filter", name,
		                             "a filter without a name; the filters are %s", list);
	if (near == FILTERS)
		return problem_set_parameter(problem, ERR_UNKNOWN_FILTER, "filter", name,
		                             "the filters are %s", list);
	return problem_set_parameter(problem, ERR_UNKNOWN_FILTER, "filter", name,
	                             "did you mean %s? GET /v1/filters lists them all",
	                             filters[near].name);
}

const struct parameter *filter_parameter(enum filter filter, size_t i)
{
	for (size_t row = 0; row < sizeof parameters / sizeof *parameters; row++)
		if (parameters[row].filter == filter && i-- == 0)
			return &parameters[row];
	return NULL;
}

struct value_kind parameter_kind(const struct parameter *p)
{
	static const enum value_type types[] = {
	    [PARAMETER_NUMBER] = VALUE_NUMBER, [PARAMETER_INTEGER] = VALUE_INTEGER,
	    [PARAMETER_ODD] = VALUE_ODD,       [PARAMETER_CHOICE] = VALUE_WORD,
	    [PARAMETER_MATRIX] = VALUE_NUMBER, [PARAMETER_NUMBERS] = VALUE_NUMBER,
	};

	return (struct value_kind){types[p->type], p->min, p->max, p->unit};
}

bool parameter_takes_share(const struct parameter *parameter)
{
	return parameter->type == PARAMETER_NUMBER && strchr(parameter->unit, '%');
}

/* The radius of a Gaussian that is cut off. */
static uint32_t gaussian_radius(double sigma)
{
	return (uint32_t)ceil(3 * sigma);
}

/* The radius of a Gaussian given by sigma alone. */
static uint32_t sigma_radius(double sigma)
{
	struct lattice lattice = lattice_for(sigma);

	return lattice.stride ? lattice.reach : gaussian_radius(sigma);
}

/* The sigma of a Gaussian given by size alone. */
static double sigma_of_radius(double radius)
{
	return 0.3 * (radius - 1) + 0.8;
}

/* The two parameters of `gaussian`; if one is not given, it follows from the other. */
static void gaussian_shape(const struct filter_call *call, double *sigma, uint32_t *radius)
{
	double given_sigma = call->value[GAUSSIAN_SIGMA], size = call->value[GAUSSIAN_SIZE];

	if (isnan(size)) {
		*sigma = isnan(given_sigma) ? 1 : given_sigma;
		*radius = sigma_radius(*sigma);
	} else {
		*sigma = isnan(given_sigma) ? sigma_of_radius((size - 1) / 2) : given_sigma;
		*radius = ((uint32_t)size - 1) / 2;
	}
}

/* True if a `gaussian` names its directions: it is then cut at its radius, however large. */
static bool is_directed(const struct filter_call *call)
{
	return call->filter == FILTER_GAUSSIAN &&
	       (!isnan(call->value[GAUSSIAN_SIGMA_X]) || !isnan(call->value[GAUSSIAN_SIGMA_Y]));
}

/* One direction of such a one: its own sigma, or that of both. */
static void directed_shape(const struct filter_call *call, double own, double *sigma,
                           uint32_t *radius)
{
	gaussian_shape(call, sigma, radius);
	if (!isnan(own))
		*sigma = own;
	if (isnan(call->value[GAUSSIAN_SIZE]))
		*radius = gaussian_radius(*sigma);
}

/* The sigma of a Gaussian on a lattice; 0 for all other calls. */
static double untruncated_sigma(const struct filter_call *call)
{
	if (call->filter == FILTER_UNSHARP)
		return call->value[UNSHARP_SIGMA];
	if (call->filter == FILTER_GAUSSIAN && !is_directed(call) &&
	    !isnan(call->value[GAUSSIAN_SIGMA]) && isnan(call->value[GAUSSIAN_SIZE]))
		return call->value[GAUSSIAN_SIGMA];
	return 0;
}

/* The radius of the window around a sample; 0 if there is one threshold for the image. */
static uint32_t threshold_radius(const struct filter_call *call)
{
	const double size = call->value[THRESHOLD_SIZE];

	if (call->value[THRESHOLD_METHOD] == THRESHOLD_BY_VALUE ||
	    call->value[THRESHOLD_METHOD] == THRESHOLD_BY_OTSU)
		return 0;
	return isnan(size) ? 5 : ((uint32_t)size - 1) / 2;
}

double filter_canny_sigma(const struct filter_call *call)
{
	return call->value[CANNY_SIGMA] < 0.1 ? 0 : call->value[CANNY_SIGMA];
}

struct lattice filter_lattice(const struct filter_call *call)
{
	return lattice_for(untruncated_sigma(call));
}

static void directed_radius(const struct filter_call *call, uint32_t *radius_x, uint32_t *radius_y)
{
	double sigma;

	gaussian_shape(call, &sigma, radius_x);
	*radius_y = *radius_x;
	if (!is_directed(call))
		return;
	directed_shape(call, call->value[GAUSSIAN_SIGMA_X], &sigma, radius_x);
	directed_shape(call, call->value[GAUSSIAN_SIGMA_Y], &sigma, radius_y);
}

/* Half of the line from its first to its last pixel, and its direction; y down. */
static double motion_line(const struct filter_call *call, double *x, double *y)
{
	const double angle = call->value[MOTION_ANGLE] * M_PI / 180;

	*x = cos(angle);
	*y = -sin(angle);
	return (call->value[MOTION_LENGTH] - 1) / 2;
}

/* Pixels less than 1 away from the line count; what rounding adds to it does not. */
static void motion_radius(const struct filter_call *call, uint32_t *radius_x, uint32_t *radius_y)
{
	double x, y, half = motion_line(call, &x, &y);

	*radius_x = (uint32_t)ceil(half * fabs(x) - 1e-9);
	*radius_y = (uint32_t)ceil(half * fabs(y) - 1e-9);
}

void filter_radius(const struct filter_call *call, uint32_t *radius_x, uint32_t *radius_y)
{
	*radius_x = *radius_y = 1;
	switch ((enum filter)call->filter) {
	case FILTER_GAUSSIAN:
		directed_radius(call, radius_x, radius_y);
		break;
	case FILTER_HIGHPASS:
		*radius_x = *radius_y = gaussian_radius(call->value[HIGHPASS_SIGMA]);
		break;
	case FILTER_LOG:
		*radius_x = *radius_y = (uint32_t)ceil(4 * call->value[LOG_SIGMA]);
		break;
	case FILTER_MOTION:
		motion_radius(call, radius_x, radius_y);
		break;
	case FILTER_BOX:
		*radius_x = *radius_y = ((uint32_t)call->value[BOX_SIZE] - 1) / 2;
		break;
	case FILTER_UNSHARP:
		*radius_x = *radius_y = sigma_radius(call->value[UNSHARP_SIGMA]);
		break;
	case FILTER_DOG:
		*radius_x = *radius_y =
		    gaussian_radius(fmax(call->value[DOG_SIGMA1], call->value[DOG_SIGMA2]));
		break;
	case FILTER_THRESHOLD:
		*radius_x = *radius_y = threshold_radius(call);
		break;
	case FILTER_CANNY:
		*radius_x = *radius_y = 2;
		if (filter_canny_sigma(call) > 0)
			*radius_x = *radius_y += sigma_radius(filter_canny_sigma(call));
		break;
	case FILTER_MEDIAN:
	case FILTER_RANK:
		*radius_x = *radius_y = (uint32_t)call->value[RANK_RADIUS];
		break;
	case FILTER_ERODE:
	case FILTER_DILATE:
	case FILTER_MORPHGRADIENT:
		*radius_x = *radius_y = ((uint32_t)call->value[ERODE_SIZE] - 1) / 2;
		break;
	case FILTER_OPEN:
	case FILTER_CLOSE:
	case FILTER_TOPHAT:
	case FILTER_BLACKHAT:
		*radius_x = *radius_y = (uint32_t)call->value[ERODE_SIZE] - 1;
		break;
	case FILTER_BILATERAL:
		*radius_x = *radius_y = (uint32_t)call->value[BILATERAL_RADIUS];
		break;
	case FILTER_GAMMA:
	case FILTER_LEVELS:
	case FILTER_LINEAR:
	case FILTER_INVERT:
	case FILTER_LUT:
	case FILTER_EQUALIZE:
	case FILTER_GRAYSCALE:
	case FILTER_COLORMATRIX:
		*radius_x = *radius_y = 0;
		break;
	case FILTER_PIXELATE:
		*radius_x = *radius_y = (uint32_t)call->value[PIXELATE_SIZE] - 1;
		break;
	case FILTER_CONVOLVE:
		*radius_x = (call->numbers[CONVOLVE_KERNEL].width - 1) / 2;
		*radius_y = (call->numbers[CONVOLVE_KERNEL].height - 1) / 2;
		break;
	case FILTER_SOBEL:
	case FILTER_SCHARR:
	case FILTER_PREWITT:
	case FILTER_LAPLACIAN:
	case FILTER_EMBOSS:
	case FILTER_SHARPEN:
	case FILTERS:
		break;
	}
}

enum gather filter_gathers(const struct filter_call *call)
{
	if (call->filter == FILTER_THRESHOLD && call->value[THRESHOLD_METHOD] == THRESHOLD_BY_OTSU)
		return GATHER_THRESHOLD;
	return call->filter == FILTER_EQUALIZE ? GATHER_TABLE
	       : call->filter == FILTER_CANNY  ? GATHER_EDGES
	                                       : GATHER_NONE;
}

enum operation_kind filter_call_operation(const struct filter_call *call)
{
	return call->filter == FILTER_THRESHOLD && threshold_radius(call)
	           ? OPERATION_LOCAL_THRESHOLD
	           : filter_operation(call->filter);
}

uint64_t filter_gathered_numbers(const struct filter_call *call, uint32_t width, uint32_t height)
{
	return filter_gathers(call) == GATHER_EDGES ? edges_words(width, height)
	                                            : (uint64_t)width * height;
}

uint32_t filter_by_colour(const struct filter_call *call)
{
	const struct numbers *n = call->numbers;
	const uint32_t gains = n[LINEAR_GAIN].width, biases = n[LINEAR_BIAS].width;
	const enum gather gather = filter_gathers(call);

	if (gather)
		return gather == GATHER_EDGES ? 0 : call->gathered.height;
	if (call->filter == FILTER_LUT)
		return n[LUT_TABLE].height;
	if (call->filter == FILTER_THRESHOLD)
		return n[THRESHOLD_VALUE].width;
	return call->filter != FILTER_LINEAR ? 0 : gains > biases ? gains : biases;
}

bool filter_mixes_colours(enum filter filter)
{
	return filter == FILTER_GRAYSCALE || filter == FILTER_COLORMATRIX;
}

/* Sets row and column to the same weights, each with sum 1. */
static void separable_symmetric(struct operation *op, double (*weight)(double d, double sigma),
                                double sigma)
{
	uint32_t size = 2 * op->radius_x + 1;
	double sum = 0;

	for (uint32_t i = 0; i < size; i++)
		sum += op->coefficients[i] = weight((double)i - op->radius_x, sigma);
	for (uint32_t i = 0; i < size; i++)
		op->coefficients[size + i] = op->coefficients[i] /= sum;
	op->smoothing = true;
	op->gain = 1;
}

static double weight_gaussian(double d, double sigma)
{
	return exp(-d * d / (2 * sigma * sigma));
}

static double weight_box(double d, double sigma)
{
	(void)d, (void)sigma;
	return 1;
}

/* Splits a matrix of rank 1 into row and column through its largest coefficient; false, and the
 * operation untouched, if its rank is higher. The magnitudes of the row have sum 1, so that a mean
 * is one of rows and one of columns. */
static bool matrix_split(const double *matrix, uint32_t width, uint32_t height, double scale,
                         double *coefficients)
{
	uint32_t pivot = 0;

	for (uint32_t i = 1; i < width * height; i++)
		if (fabs(matrix[i]) > fabs(matrix[pivot]))
			pivot = i;

	const double peak = matrix[pivot];
	const double *row = matrix + pivot / width * width, *column = matrix + pivot % width;

	if (peak == 0)
		return false;
	for (uint32_t j = 0; j < height; j++)
		for (uint32_t i = 0; i < width; i++)
			if (fabs(matrix[j * width + i] - row[i] * (column[j * width] / peak)) >
			    1e-12 * fabs(peak))
				return false;
	double size = 0;

	for (uint32_t i = 0; i < width; i++)
		size += fabs(row[i]);
	size = copysign(size, peak);
	for (uint32_t i = 0; i < width; i++)
		coefficients[i] = row[i] / size;
	for (uint32_t j = 0; j < height; j++)
		coefficients[width + j] = column[j * width] / peak * (size / scale);
	return true;
}

struct matrix_sums filter_matrix_sums(const struct filter_call *call, const double *coefficients)
{
	const struct numbers *n = &call->numbers[CONVOLVE_KERNEL];
	const double *matrix = coefficients + n->first;
	struct matrix_sums sums = {.scale = call->value[CONVOLVE_SCALE]};
	double sum = 0;

	for (uint32_t i = 0; i < n->width * n->height; i++) {
		sum += matrix[i];
		sums.magnitudes += fabs(matrix[i]);
	}
	/* Treats a sum as 0 if it is no larger than the rounding error of its terms. */
	sums.smoothing = fabs(sum) > 1e-9 * sums.magnitudes;
	if (isnan(sums.scale))
		sums.scale = sums.smoothing ? sum : 1;
	return sums;
}

double filter_gain_max(const struct filter_call *call)
{
	const struct numbers *n = &call->numbers[CONVOLVE_KERNEL];

	return 0x1p32 / (n->width * n->height + 2);
}

static void lower_matrix(const struct filter_call *call, const double *coefficients,
                         struct operation *op)
{
	const struct numbers *n = &call->numbers[CONVOLVE_KERNEL];
	const uint32_t width = n->width, height = n->height;
	const double *matrix = coefficients + n->first;
	const struct matrix_sums sums = filter_matrix_sums(call, coefficients);

	op->smoothing = sums.smoothing;
	op->offset = call->value[CONVOLVE_OFFSET];
	op->gain = sums.magnitudes / fabs(sums.scale);
	op->kind = OPERATION_SEPARABLE;
	if (width > 1 && height > 1 &&
	    matrix_split(matrix, width, height, sums.scale, op->coefficients))
		return;
	op->kind = OPERATION_MATRIX;
	for (uint32_t i = 0; i < width * height; i++)
		op->coefficients[i] = matrix[i] / sums.scale;
}

/* weights: of the smoothing across the derivative. */
static void lower_gradient(const double weights[3], double output, struct operation *op)
{
	memcpy(op->coefficients, weights, 3 * sizeof *weights);
	op->output = (enum gradient_output)output;
	op->signed_output = op->output == GRADIENT_X || op->output == GRADIENT_Y;
	op->gain = 2 * (weights[0] + weights[1] + weights[2]);
	if (op->output == GRADIENT_MAGNITUDE)
		op->gain *= sqrt(2);
}

/* A 3x3 matrix. */
static void lower_3x3(const double matrix[9], struct operation *op)
{
	memcpy(op->coefficients, matrix, 9 * sizeof *matrix);
	for (int i = 0; i < 9; i++)
		op->gain += fabs(matrix[i]);
}

/* The identity, more of it, less a Gaussian of size 3. */
static void lower_sharpen(const struct filter_call *call, struct operation *op)
{
	const struct filter_call blur = {.filter = FILTER_GAUSSIAN,
	                                 .value = {[GAUSSIAN_SIGMA] = NAN, [GAUSSIAN_SIZE] = 3}};
	double amount = call->value[SHARPEN_AMOUNT], taps[3], sigma, sum = 0;
	uint32_t radius;

	gaussian_shape(&blur, &sigma, &radius);
	for (int i = 0; i < 3; i++)
		sum += taps[i] = weight_gaussian(i - 1, sigma);
	for (int i = 0; i < 9; i++) {
		op->coefficients[i] =
		    (i == 4 ? 1 + amount : 0) - amount * taps[i / 3] * taps[i % 3] / (sum * sum);
		op->gain += fabs(op->coefficients[i]);
	}
	op->smoothing = true;
}

static void lower_unsharp(const struct filter_call *call, struct operation *op)
{
	separable_symmetric(op, weight_gaussian, call->value[UNSHARP_SIGMA]);
	op->smoothing = false;
	op->amount = call->value[UNSHARP_AMOUNT];
	op->threshold = call->value[UNSHARP_THRESHOLD];
	op->gain = 1 + 2 * op->amount;
}

/* Sets one direction of a Gaussian, with sum 1. */
static void gaussian_weights(double *weights, uint32_t radius, double sigma)
{
	double sum = 0;

	for (uint32_t i = 0; i <= 2 * radius; i++)
		sum += weights[i] = weight_gaussian((double)i - radius, sigma);
	for (uint32_t i = 0; i <= 2 * radius; i++)
		weights[i] /= sum;
}

/* Sets one of the Gaussians, which is 0 beyond its own radius. */
static void dog_weights(double *weights, uint32_t radius, double sigma)
{
	const uint32_t own = gaussian_radius(sigma);

	gaussian_weights(weights + radius - own, own, sigma);
}

static void lower_dog(const struct filter_call *call, struct operation *op)
{
	const uint32_t radius = op->radius_x;

	dog_weights(op->coefficients, radius, call->value[DOG_SIGMA1]);
	dog_weights(op->coefficients + 2 * radius + 1, radius, call->value[DOG_SIGMA2]);
	op->signed_output = true;
	op->gain = 2;
}

static void lower_gaussian(const struct filter_call *call, struct operation *op)
{
	double sigma;
	uint32_t radius;

	op->smoothing = true;
	op->gain = 1;
	if (!is_directed(call)) {
		gaussian_shape(call, &sigma, &radius);
		separable_symmetric(op, weight_gaussian, sigma);
		return;
	}
	directed_shape(call, call->value[GAUSSIAN_SIGMA_X], &sigma, &radius);
	gaussian_weights(op->coefficients, op->radius_x, sigma);
	directed_shape(call, call->value[GAUSSIAN_SIGMA_Y], &sigma, &radius);
	gaussian_weights(op->coefficients + 2 * op->radius_x + 1, op->radius_y, sigma);
}

/* The image itself is the first "Gaussian". */
static void lower_highpass(const struct filter_call *call, struct operation *op)
{
	op->coefficients[op->radius_x] = 1;
	dog_weights(op->coefficients + 2 * op->radius_x + 1, op->radius_x,
	            call->value[HIGHPASS_SIGMA]);
	op->signed_output = true;
	op->gain = 2;
}

/* sigma² times the second derivatives of a Gaussian of sum 1, and as much of the Gaussian itself as
 * makes their sum 0. */
static void lower_log(const struct filter_call *call, struct operation *op)
{
	const double sigma = call->value[LOG_SIGMA];
	const int radius = (int)op->radius_x;
	double sum = 0, moment = 0, *at = op->coefficients;

	for (int pass = 0; pass < 2; pass++, at = op->coefficients)
		for (int y = -radius; y <= radius; y++)
			for (int x = -radius; x <= radius; x++, at++) {
				const double r2 = (x * x + y * y) / (sigma * sigma);
				const double g = exp(-r2 / 2);

				if (pass)
					op->gain += fabs(*at = (r2 - moment / sum) * g / sum);
				else
					sum += g, moment += r2 * g;
			}
	op->signed_output = true;
}

/* A pixel counts by how near to the line its centre is: 1 on it, 0 from 1 pixel away. */
static void lower_motion(const struct filter_call *call, struct operation *op)
{
	const int rx = (int)op->radius_x, ry = (int)op->radius_y;
	double x, y, half = motion_line(call, &x, &y), sum = 0, *at = op->coefficients;

	for (int j = -ry; j <= ry; j++)
		for (int i = -rx; i <= rx; i++, at++) {
			const double along = fmin(fmax(i * x + j * y, -half), half);

			*at = fmax(0, 1 - hypot(i - along * x, j - along * y));
			sum += *at;
		}
	while (at-- > op->coefficients)
		*at /= sum;
	op->smoothing = true;
	op->gain = 1;
}

static void lower_bilateral(const struct filter_call *call, struct operation *op)
{
	const double space = call->value[BILATERAL_SIGMA_SPACE];
	const double range = call->value[BILATERAL_SIGMA_RANGE];

	op->smoothing = true;
	op->space = -1 / (2 * space * space);
	op->range = -1 / (2 * range * range);
	op->gain = 1;
}

_Static_assert((int)ERODE_SIZE == (int)MORPHGRADIENT_SIZE &&
                   (int)ERODE_SHAPE == (int)MORPHGRADIENT_SHAPE,
               "parameters of all of morphology");

static void lower_morphology(const struct filter_call *call, struct operation *op)
{
	static const enum morphology morphologies[FILTERS] = {
	    [FILTER_OPEN] = MORPHOLOGY_OPEN,
	    [FILTER_CLOSE] = MORPHOLOGY_CLOSE,
	    [FILTER_TOPHAT] = MORPHOLOGY_TOPHAT,
	    [FILTER_BLACKHAT] = MORPHOLOGY_BLACKHAT,
	    [FILTER_MORPHGRADIENT] = MORPHOLOGY_GRADIENT,
	};

	op->element = (enum element)call->value[ERODE_SHAPE];
	op->largest = call->filter == FILTER_DILATE;
	op->morphology = morphologies[call->filter];
	op->gain = 1;
}

/* Sets each band's number from a list, or the only one or the default for all. True for a list. */
static bool spread(const struct filter_call *call, size_t parameter, const double *coefficients,
                   double value[BANDS_MAX])
{
	const struct numbers *n = &call->numbers[parameter];

	for (uint32_t b = 0; b < BANDS_MAX; b++)
		value[b] = n->width ? coefficients[n->first + (b < n->width ? b : n->width - 1)]
		                    : call->value[parameter];
	return n->width > 1;
}

static void lower_threshold(const struct filter_call *call, const double *coefficients,
                            struct operation *op)
{
	const double offset = call->value[THRESHOLD_OFFSET], radius = op->radius_x;
	const struct numbers *n = &call->gathered;

	op->by_band = spread(call, THRESHOLD_VALUE, coefficients, op->limit);
	op->gain = 1;
	if (call->value[THRESHOLD_METHOD] == THRESHOLD_BY_OTSU) { /* not gathered: the default */
		for (uint32_t b = 0; n->width && b < BANDS_MAX; b++)
			op->limit[b] = coefficients[n->first + (b < n->height ? b : n->height - 1)];
		op->by_band = n->height > 1;
	}
	if (!threshold_radius(call))
		return;
	op->kind = OPERATION_LOCAL_THRESHOLD;
	op->threshold = isnan(offset) ? 0 : -offset;
	if (call->value[THRESHOLD_METHOD] == THRESHOLD_BY_MEAN)
		separable_symmetric(op, weight_box, 0);
	else
		separable_symmetric(op, weight_gaussian, sigma_of_radius(radius));
	op->smoothing = false;
}

/* Once its edges are known, nothing is left to be done but to draw them. */
static void lower_canny(const struct filter_call *call, const double *coefficients,
                        struct operation *op)
{
	op->low = call->value[CANNY_LOW];
	op->high = call->value[CANNY_HIGH];
	op->gain = 1;
	if (!call->gathered.width)
		return;
	op->kind = OPERATION_EDGES;
	op->plane = coefficients + call->gathered.first;
	op->plane_width = call->gathered.width;
	op->plane_height = call->gathered.height;
}

_Static_assert((int)MEDIAN_RADIUS == (int)RANK_RADIUS && (int)MEDIAN_WINDOW == (int)RANK_WINDOW,
               "parameters of both");

static void lower_rank(const struct filter_call *call, double percentile, struct operation *op)
{
	const int radius = (int)op->radius_x;
	uint32_t count = 0;

	op->element = call->value[RANK_WINDOW] > 0 ? ELEMENT_CIRCLE : ELEMENT_RECTANGLE;
	for (int j = -radius; j <= radius; j++)
		count += 2 * (uint32_t)element_half_width(j, radius, (int)op->element) + 1;
	op->rank = (uint32_t)floor(percentile / 100 * (count - 1) + 0.5);
	op->gain = 1;
}

static void lower_curve(const struct filter_call *call, const double *coefficients,
                        struct operation *op)
{
	const double *v = call->value;
	struct curve *c = &op->curve;
	double gain = 1, bias = 0;

	*c = (struct curve){.low = -INFINITY, .high = INFINITY, .exponent = 1, .scale = 1};
	if (call->filter == FILTER_GAMMA) {
		c->low = 0;
		c->exponent = 1 / v[GAMMA_GAMMA];
	} else if (call->filter == FILTER_LEVELS) {
		gain = 1 / (v[LEVELS_WHITE] - v[LEVELS_BLACK]);
		bias = -v[LEVELS_BLACK] * gain;
		c->low = 0;
		c->high = 1;
		c->exponent = 1 / v[LEVELS_GAMMA];
	} else if (call->filter == FILTER_INVERT) {
		c->scale = -1;
		c->shift = 1;
	}
	for (int b = 0; b < BANDS_MAX; b++) {
		c->gain[b] = gain;
		c->bias[b] = bias;
	}
	if (call->filter == FILTER_LINEAR) {
		const bool gains = spread(call, LINEAR_GAIN, coefficients, c->gain);
		const bool biases = spread(call, LINEAR_BIAS, coefficients, c->bias);

		op->by_band = gains || biases;
	}
	for (int b = 0; b < BANDS_MAX; b++)
		op->gain = fmax(op->gain, fabs(c->gain[b]));
}

/* Entries of the table that lines through points are looked up in: 16 for each value of a byte,
 * whose results are therefore those of the lines. */
enum { POINTS_ENTRIES = 16 * 255 + 1 };

/* The line through points (x, y) at x; before the first and after the last their own y. */
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

/* The size of the tables, which operation_init() makes. */
static void size_tables(const struct filter_call *call, struct operation *op)
{
	const bool gathered = filter_gathers(call) == GATHER_TABLE;
	const struct numbers *table = gathered ? &call->gathered : &call->numbers[LUT_TABLE];

	if (call->filter != FILTER_LUT && !gathered)
		return;
	op->tables = table->width ? table->height : 1;
	op->entries = table->width ? table->width : gathered ? 2 : POINTS_ENTRIES;
}

/* Before it is gathered, a table that changes nothing. */
static void lower_equalize(const struct filter_call *call, const double *coefficients,
                           struct operation *op)
{
	const struct numbers *table = &call->gathered;

	op->coefficients[op->entries - 1] = 1;
	if (table->width)
		memcpy(op->coefficients, coefficients + table->first,
		       (size_t)op->entries * op->tables * sizeof *coefficients);
	op->by_band = op->tables > 1;
	op->gain = op->entries - 1;
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

static void lower_grayscale(const struct filter_call *call, struct operation *op)
{
	static const double weights[3][3] = {
	    {0.299, 0.587, 0.114}, {0.2126, 0.7152, 0.0722}, {1.0 / 3, 1.0 / 3, 1.0 / 3}};
	const double *of = weights[(size_t)call->value[GRAYSCALE_WEIGHTS]];

	for (size_t i = 0; i < 3; i++)
		memcpy(op->coefficients + i * (BANDS_MAX + 1), of, 3 * sizeof *of);
	op->by_band = true;
	op->gain = 1;
}

static void lower_colormatrix(const struct filter_call *call, const double *coefficients,
                              struct operation *op)
{
	const struct numbers *n = &call->numbers[COLORMATRIX_MATRIX];

	op->by_band = true;
	op->makes_alpha = n->height == BANDS_MAX;
	for (uint32_t i = 0; i < n->height; i++) {
		const double *from = coefficients + n->first + (size_t)i * n->width;
		double *to = op->coefficients + (size_t)i * (BANDS_MAX + 1);

		memcpy(to, from, (n->width - 1) * sizeof *to);
		to[BANDS_MAX] = from[n->width - 1];
	}
	for (int i = 0; i < BANDS_MAX; i++) {
		const double *row = op->coefficients + (size_t)i * (BANDS_MAX + 1);

		op->gain =
		    fmax(op->gain, fabs(row[0]) + fabs(row[1]) + fabs(row[2]) + fabs(row[3]));
	}
}

enum error filter_lower(const struct filter_call *call, const double *coefficients,
                        struct operation *op)
{
	static const double sobel[3] = {1, 2, 1}, scharr[3] = {3, 10, 3}, prewitt[3] = {1, 1, 1};
	static const double laplacian[2][9] = {{0, 1, 0, 1, -4, 1, 0, 1, 0},
	                                       {1, 1, 1, 1, -8, 1, 1, 1, 1}};
	static const double emboss[9] = {-2, -1, 0, -1, 1, 1, 0, 1, 2};

	*op = (struct operation){.kind = filter_operation(call->filter)};
	filter_radius(call, &op->radius_x, &op->radius_y);
	size_tables(call, op);
	if (operation_init(op))
		return ERR_MEMORY;
	op->lattice = filter_lattice(call);
	op->sigma = op->lattice.stride ? untruncated_sigma(call) : 0;
	switch ((enum filter)call->filter) {
	case FILTER_GAUSSIAN:
		lower_gaussian(call, op);
		break;
	case FILTER_HIGHPASS:
		lower_highpass(call, op);
		break;
	case FILTER_LOG:
		lower_log(call, op);
		break;
	case FILTER_MOTION:
		lower_motion(call, op);
		break;
	case FILTER_BOX:
		separable_symmetric(op, weight_box, 0);
		break;
	case FILTER_UNSHARP:
		lower_unsharp(call, op);
		break;
	case FILTER_DOG:
		lower_dog(call, op);
		break;
	case FILTER_THRESHOLD:
		lower_threshold(call, coefficients, op);
		break;
	case FILTER_CANNY:
		lower_canny(call, coefficients, op);
		break;
	case FILTER_MEDIAN:
		lower_rank(call, 50, op);
		break;
	case FILTER_RANK:
		lower_rank(call, call->value[RANK_PERCENTILE], op);
		break;
	case FILTER_ERODE:
	case FILTER_DILATE:
	case FILTER_OPEN:
	case FILTER_CLOSE:
	case FILTER_TOPHAT:
	case FILTER_BLACKHAT:
	case FILTER_MORPHGRADIENT:
		lower_morphology(call, op);
		break;
	case FILTER_BILATERAL:
		lower_bilateral(call, op);
		break;
	case FILTER_GAMMA:
	case FILTER_LEVELS:
	case FILTER_LINEAR:
	case FILTER_INVERT:
		lower_curve(call, coefficients, op);
		break;
	case FILTER_LUT:
		lower_lut(call, coefficients, op);
		break;
	case FILTER_EQUALIZE:
		lower_equalize(call, coefficients, op);
		break;
	case FILTER_GRAYSCALE:
		lower_grayscale(call, op);
		break;
	case FILTER_COLORMATRIX:
		lower_colormatrix(call, coefficients, op);
		break;
	case FILTER_PIXELATE:
		op->smoothing = true;
		op->gain = 1;
		break;
	case FILTER_CONVOLVE:
		lower_matrix(call, coefficients, op);
		break;
	case FILTER_LAPLACIAN:
		lower_3x3(laplacian[(size_t)call->value[LAPLACIAN_CONNECTIVITY]], op);
		op->signed_output = true;
		break;
	case FILTER_EMBOSS:
		lower_3x3(emboss, op);
		break;
	case FILTER_SHARPEN:
		lower_sharpen(call, op);
		break;
	case FILTER_SOBEL:
		lower_gradient(sobel, call->value[SOBEL_OUTPUT], op);
		break;
	case FILTER_SCHARR:
		lower_gradient(scharr, call->value[SCHARR_OUTPUT], op);
		break;
	case FILTER_PREWITT:
		lower_gradient(prewitt, call->value[PREWITT_OUTPUT], op);
		break;
	case FILTERS:
		break;
	}
	return ERR_OK;
}
