/* A chain of filters: parses it from text, one key at a time, and checks it. */
#include "filters/chain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memfd.h"
#include "base/text.h"

size_t chain_size(const struct chain *chain)
{
	return offsetof(struct chain, coefficient) +
	       chain->coefficients_used * sizeof *chain->coefficient;
}

struct chain *chain_copy(const struct chain *chain, uint32_t more)
{
	struct chain *copy = calloc(1, chain_size(chain) + more * sizeof *chain->coefficient);

	if (copy)
		memcpy(copy, chain, chain_size(chain));
	return copy;
}

void chain_init(struct chain *chain)
{
	memset(chain, 0, offsetof(struct chain, coefficient));
	chain->border = BORDER_REPLICATE;
}

static struct filter_call *last_call(struct chain *chain)
{
	return &chain->call[chain->count - 1];
}

enum error chain_add_filter(struct chain *chain, const char *name, struct problem *problem)
{
	enum filter filter = filter_parse(name);
	const struct parameter *p;

	if (filter == FILTERS)
		return filter_unknown(name, problem);
	if (chain->count == CHAIN_FILTERS_MAX)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "filters", name,
		                             "a chain has at most %d filters", CHAIN_FILTERS_MAX);
	chain->count++;
	*last_call(chain) = (struct filter_call){.filter = filter};
	for (size_t i = 0; (p = filter_parameter(filter, i)); i++)
		last_call(chain)->value[i] = p->default_;
	return ERR_OK;
}

/* Finds the last filter's parameter of this name and its index. */
static const struct parameter *find_parameter(const struct chain *chain, const char *name,
                                              size_t *i)
{
	const struct parameter *p;

	for (*i = 0; (p = filter_parameter(chain->call[chain->count - 1].filter, *i)); ++*i)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

bool chain_knows_parameter(const struct chain *chain, const char *name)
{
	size_t i;

	return find_parameter(chain, name, &i) != NULL;
}

/* Reads "2.5%", up to 100%. */
static bool parse_share(const char *text, double *share)
{
	char number[32];
	const size_t length = strlen(text);

	if (length < 2 || length > sizeof number || text[length - 1] != '%')
		return false;
	memcpy(number, text, length - 1);
	number[length - 1] = '\0';
	return value_number(number, share) && *share > 0 && *share <= 100;
}

/* The advice for a sigma that is too large. */
static const char *instead_of(const struct parameter *p, double value)
{
	return parameter_takes_share(p) && value > p->max
	           ? "; instead, use pixelate, or a chain of several gaussians (the squares of "
	             "their sigmas add up)"
	           : "";
}

static enum error set_value(struct chain *chain, const struct parameter *p, size_t i,
                            const char *text, struct problem *problem)
{
	const struct value_kind kind = parameter_kind(p);
	double value = 0;
	const bool share = parameter_takes_share(p) && parse_share(text, &value);
	const enum error e = share ? ERR_OK : value_parse(&kind, p->name, text, &value, problem);

	if (e) {
		const size_t said = strlen(problem->detail);

		snprintf(problem->detail + said, sizeof problem->detail - said, "%s",
		         instead_of(p, value));
		return e;
	}
	last_call(chain)->value[i] = value;
	last_call(chain)->shares &= ~(1u << i);
	last_call(chain)->shares |= (uint32_t)share << i;
	return ERR_OK;
}

/* Parses one row of a matrix, up to ';' or the end, into `coefficient`, which has space for `room`
 * numbers. Returns their count; -1 if the text is not a row of numbers; -2 if they do not fit. */
static int parse_row(const char **text, double *coefficient, size_t room)
{
	int count = 0;

	for (;;) {
		char word[32];
		size_t length;

		*text += strspn(*text, " ,");
		if (!**text || **text == ';')
			return count;
		length = strcspn(*text, " ,;");
		if ((size_t)count >= room)
			return -2;
		if (length >= sizeof word)
			return -1;
		memcpy(word, *text, length);
		word[length] = '\0';
		if (!value_number(word, &coefficient[count]) || fabs(coefficient[count]) > 1e9)
			return -1;
		count++;
		*text += length;
	}
}

/* Says which numbers a row may have. */
static enum error refuse_row(const struct parameter *p, const char *text, uint32_t row,
                             struct problem *problem)
{
	if (p->type == PARAMETER_MATRIX)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, p->name, text,
		                             "%s: expected numbers from -1e9 to 1e9, as in "
		                             "1,2,1;2,4,2;1,2,1; row %u has others",
		                             p->name, row);
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, p->name, text,
	                             "%s: expected numbers from %g to %g; not so in row %u",
	                             p->name, p->min, p->max, row);
}

/* Parses rows of numbers of equal length to the end of the chain's coefficients. */
static enum error parse_rows(const struct chain *chain, const struct parameter *p, const char *text,
                             double *to, struct numbers *rows, struct problem *problem)
{
	const size_t room = CHAIN_GIVEN_MAX - chain->coefficients_used;
	const char *at = text;
	size_t used = 0;

	for (;; at++) {
		const int count = parse_row(&at, to + used, room - used);

		if (count == -2)
			return problem_set_parameter(
			    problem, ERR_BAD_PARAMETER, p->name, text,
			    "all matrices of a chain together have at most %d coefficients, and "
			    "each has at most %dx%d",
			    CHAIN_GIVEN_MAX, MATRIX_SIDE_MAX, MATRIX_SIDE_MAX);
		if (count == -1 || (!count && p->type == PARAMETER_NUMBERS))
			return refuse_row(p, text, rows->height + 1, problem);
		if (count <= 0 || (rows->height && (uint32_t)count != rows->width))
			return problem_set_parameter(problem, ERR_BAD_PARAMETER, p->name, text,
			                             "%s: expected rows of equal length, as in "
			                             "1,2,1;2,4,2;1,2,1; row %u differs",
			                             p->name, rows->height + 1);
		rows->width = (uint32_t)count;
		rows->height++;
		used += (size_t)count;
		if (*at != ';')
			return ERR_OK;
	}
}

/* True if all numbers are within the limits of the parameter. */
static bool numbers_in_range(const struct parameter *p, const double *number, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!(number[i] >= p->min && number[i] <= p->max))
			return false;
	return true;
}

static enum error set_rows(struct chain *chain, const struct parameter *p, size_t i,
                           const char *text, struct problem *problem)
{
	const uint32_t used = chain->coefficients_used;
	double *number = &chain->coefficient[used];
	struct numbers rows = {.first = used};
	enum error e = parse_rows(chain, p, text, number, &rows, problem);
	size_t count = (size_t)rows.width * rows.height;

	if (e)
		return e;
	if (p->type == PARAMETER_MATRIX && (rows.width % 2 == 0 || rows.height % 2 == 0 ||
	                                    rows.width > p->max || rows.height > p->max))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, p->name, text,
		                             "%s: expected odd sides from %g to %g, not %ux%u",
		                             p->name, p->min, p->max, rows.width, rows.height);
	if (p->type == PARAMETER_NUMBERS && !numbers_in_range(p, number, count))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, p->name, text,
		                             "%s: expected numbers from %g to %g%s%s", p->name,
		                             p->min, p->max, *p->unit ? ", in " : "", p->unit);
	last_call(chain)->numbers[i] = rows;
	chain->coefficients_used += (uint32_t)count;
	return ERR_OK;
}

enum error chain_set_parameter(struct chain *chain, const char *name, const char *text,
                               struct problem *problem)
{
	size_t i;
	const struct parameter *p = find_parameter(chain, name, &i);
	char list[128] = "";

	if (p && (p->type == PARAMETER_MATRIX || p->type == PARAMETER_NUMBERS))
		return set_rows(chain, p, i, text, problem);
	if (p)
		return set_value(chain, p, i, text, problem);
	for (i = 0; (p = filter_parameter(last_call(chain)->filter, i)); i++)
		list_add(list, sizeof list, p->name);
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, name, text,
	                             "unknown parameter; %s takes %s",
	                             filter_name(last_call(chain)->filter), *list ? list : "none");
}

/* Cuts the text in place at the first `separator`; returns the text after it, or NULL. */
static char *cut(char *text, char separator)
{
	char *at = strchr(text, separator);

	if (at)
		*at++ = '\0';
	return at;
}

/* Parses one link of the chain, "NAME=key=value:key=value", and cuts the text up. */
static enum error parse_link(struct chain *chain, char *link, struct problem *problem)
{
	char *pair = cut(link, '='), *next, *value;
	enum error e = chain_add_filter(chain, link, problem);

	for (; !e && pair; pair = next) {
		next = cut(pair, ':');
		value = cut(pair, '=');
		if (!value)
			return problem_set_parameter(
			    problem, ERR_BAD_PARAMETER, "filters", pair,
			    "expected parameters as key=value, separated by ':', as in "
			    "gaussian=sigma=2");
		e = chain_set_parameter(chain, pair, value, problem);
	}
	return e;
}

enum error chain_parse_for(struct chain *chain, enum channels channels, const char *parameter,
                           const char *text, struct problem *problem)
{
	uint32_t before = chain->count;
	char *copy, *link, *next;
	enum error e = ERR_OK;

	if (!*text)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, parameter, text,
		                             "%s: expected at least one filter, as in "
		                             "%s=gaussian=sigma=1.4,sobel",
		                             parameter, parameter);
	copy = strdup(text);
	if (!copy)
		return problem_set(problem, ERR_MEMORY, "no memory for the chain");
	for (link = copy; !e && link; link = next) {
		next = cut(link, ',');
		e = parse_link(chain, link, problem);
	}
	free(copy);
	for (uint32_t i = before; i < chain->count; i++)
		chain->call[i].channels = channels;
	if (e && !strcmp(problem->parameter, "filters"))
		snprintf(problem->parameter, sizeof problem->parameter, "%s", parameter);
	return e;
}

enum error chain_parse(struct chain *chain, const char *text, struct problem *problem)
{
	return chain_parse_for(chain, CHANNELS_ALL, "filters", text, problem);
}

void chain_set_channels(struct chain *chain, enum channels channels)
{
	for (uint32_t i = 0; i < chain->count; i++)
		chain->call[i].channels = channels;
}

enum error chain_set_border_value(struct chain *chain, const char *text, struct problem *problem)
{
	const char *at = text;
	int count = parse_row(&at, chain->border_value, BANDS_MAX);

	if (count < 1 || *at)
		return problem_set_parameter(
		    problem, ERR_BAD_PARAMETER, "border_value", text,
		    "border_value: expected one number, or one for each band, separated by "
		    "commas, as in 255,0,0");
	chain->border_values = (uint32_t)count;
	return ERR_OK;
}

enum error chain_set_regions(struct chain *chain, const char *text, struct problem *problem)
{
	const uint32_t used = chain->coefficients_used;
	uint32_t count = 0;
	enum error e =
	    regions_parse(text, &chain->coefficient[used], CHAIN_GIVEN_MAX - used, &count, problem);

	if (e)
		return e;
	chain->regions.count = count;
	chain->regions.first = used;
	chain->coefficients_used += count * REGION_NUMBERS;
	return ERR_OK;
}

const double *chain_shapes(const struct chain *chain)
{
	return &chain->coefficient[chain->regions.first];
}

/* Refuses a matrix whose sums are not exact enough. */
static enum error check_gain(const struct chain *chain, const struct filter_call *call,
                             struct problem *problem)
{
	const struct matrix_sums sums = filter_matrix_sums(call, chain->coefficient);
	const double max = filter_gain_max(call), given = call->value[CONVOLVE_SCALE];
	char text[32];

	if (sums.magnitudes <= max * fabs(sums.scale))
		return ERR_OK;
	if (isnan(given)) {
		snprintf(text, sizeof text, "%ux%u", call->numbers[CONVOLVE_KERNEL].width,
		         call->numbers[CONVOLVE_KERNEL].height);
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "kernel", text,
		                             "kernel: its magnitudes add up to %g, and it is "
		                             "divided by %g; expected a quotient of at most %g",
		                             sums.magnitudes, sums.scale, max);
	}
	snprintf(text, sizeof text, "%g", given);
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "scale", text,
	                             "scale: expected a magnitude of at least %g for this kernel, "
	                             "whose magnitudes add up to %g",
	                             sums.magnitudes / max, sums.magnitudes);
}

static enum error check_threshold(const struct filter_call *call, struct problem *problem)
{
	const bool by_value = call->value[THRESHOLD_METHOD] == THRESHOLD_BY_VALUE;
	const bool local = !by_value && !filter_gathers(call);
	const char *excess = !local && !isnan(call->value[THRESHOLD_SIZE])       ? "size"
	                     : !local && !isnan(call->value[THRESHOLD_OFFSET])   ? "offset"
	                     : !by_value && call->numbers[THRESHOLD_VALUE].width ? "value"
	                                                                         : NULL;

	if (!excess)
		return ERR_OK;
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, excess, "",
	                             "%s: threshold takes value with method=value, which is the "
	                             "default, size and offset with mean and gaussian, and none of "
	                             "them with otsu",
	                             excess);
}

/* A fault in the numbers of a call. */
struct fault {
	const char *parameter, *expected; /* NULL: nothing */
};

static bool has_shape(const struct numbers *n, uint32_t width, uint32_t height)
{
	return n->width == width && n->height == height;
}

static struct fault linear_fault(const struct filter_call *call)
{
	static const char expected[] = "expected one number, or one for each colour, as in "
	                               "1.2,1,0.9; gain and bias have as many";
	const struct numbers *gain = &call->numbers[LINEAR_GAIN],
	                     *bias = &call->numbers[LINEAR_BIAS];

	if (gain->height > 1 || gain->width > BANDS_MAX)
		return (struct fault){"gain", expected};
	if (bias->height > 1 || bias->width > BANDS_MAX ||
	    (gain->width > 1 && bias->width > 1 && gain->width != bias->width))
		return (struct fault){"bias", expected};
	return (struct fault){0};
}

static struct fault points_fault(const struct filter_call *call, const double *coefficients)
{
	const struct numbers *points = &call->numbers[LUT_POINTS];
	const double *point = coefficients + points->first, max = call->value[LUT_MAX];

	if (points->width != 2 || points->height < 2 || points->height > LUT_POINTS_MAX)
		return (struct fault){"points",
		                      "expected 2 to 64 rows of an input and its result, as "
		                      "in 0,0;64,40;255,255"};
	for (uint32_t i = 0; i < points->height; i++, point += 2)
		if (point[0] > max || point[1] > max || (i && point[0] <= point[-2]))
			return (struct fault){"points",
			                      "expected inputs that rise, and nothing above max"};
	return (struct fault){0};
}

static struct fault lut_fault(const struct filter_call *call, const double *coefficients)
{
	const struct numbers *table = &call->numbers[LUT_TABLE];
	const bool by_points = call->numbers[LUT_POINTS].width;
	const double *entry = coefficients + table->first;

	if (by_points == (table->width > 0))
		return (struct fault){
		    by_points ? "points" : "table",
		    "expected either a table, of 256 numbers from 0 to 255, say, or "
		    "points, as in 0,0;64,40;255,255"};
	if (by_points)
		return points_fault(call, coefficients);
	if (table->width < 2 || table->width > LUT_ENTRIES_MAX || table->height > BANDS_MAX)
		return (struct fault){
		    "table", "expected 2 to 4096 numbers, in one row or in one for each colour"};
	for (uint32_t i = 0; i < table->width * table->height; i++)
		if (entry[i] > call->value[LUT_MAX])
			return (struct fault){"table", "expected numbers of at most max"};
	return (struct fault){0};
}

/* False for a filter that needs colours, to mix them or for its numbers, on a channel that is none.
 */
static bool has_its_channels(const struct filter_call *call)
{
	const bool alpha = call->channels == CHANNELS_ALPHA;

	if (!filter_mixes_colours(call->filter) && filter_by_colour(call) <= 1)
		return true;
	if (call->filter == FILTER_COLORMATRIX && call->numbers[COLORMATRIX_MATRIX].height == 4 &&
	    alpha)
		return true;
	return !alpha && call->channels != CHANNELS_LUMA && call->channels != CHANNELS_CHROMA;
}

static struct fault find_fault(const struct chain *chain, const struct filter_call *call)
{
	const struct numbers *matrix = &call->numbers[COLORMATRIX_MATRIX];
	const struct numbers *limit = &call->numbers[THRESHOLD_VALUE];
	struct fault fault = {0};

	if (call->filter == FILTER_LINEAR)
		fault = linear_fault(call);
	else if (call->filter == FILTER_LUT)
		fault = lut_fault(call, chain->coefficient);
	if (fault.parameter)
		return fault;
	if (call->filter == FILTER_THRESHOLD && (limit->height > 1 || limit->width > BANDS_MAX))
		return (struct fault){"value", "expected one number, or one for each colour, as in "
		                               "0.3,0.5,0.4"};
	if (call->filter == FILTER_COLORMATRIX && !has_shape(matrix, 4, 3) &&
	    !has_shape(matrix, 5, 4))
		return (struct fault){"matrix", "expected 3 rows of 4 numbers, or 4 of 5, as in "
		                                "1.1,0,0,0;0,1,0,0;0,0,0.9,0"};
	if (filter_gathers(call) &&
	    (call->channels == CHANNELS_ALPHA || call->channels == CHANNELS_CHROMA))
		return (struct fault){"channels", "expected all, color, red, green, blue or luma "
		                                  "for a filter that counts an image's values"};
	if (!has_its_channels(call))
		return (struct fault){
		    "channels", "expected all, color, red, green or blue for a filter that mixes "
		                "colours or has numbers for each"};
	return (struct fault){0};
}

static enum error check_call(const struct chain *chain, const struct filter_call *call,
                             struct problem *problem)
{
	const struct fault fault = find_fault(chain, call);

	if (fault.parameter)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, fault.parameter, "",
		                             "%s: %s", fault.parameter, fault.expected);
	if (call->filter == FILTER_THRESHOLD)
		return check_threshold(call, problem);
	if (call->filter == FILTER_LEVELS && /* floats must be able to stretch the range */
	    !(call->value[LEVELS_WHITE] - call->value[LEVELS_BLACK] >= 0.01 - 1e-9))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "white", "",
		                             "white: expected at least black + 0.01, which is %g",
		                             call->value[LEVELS_BLACK] + 0.01);
	if (call->filter == FILTER_CANNY && !(call->value[CANNY_LOW] <= call->value[CANNY_HIGH]))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "high", "",
		                             "high: expected at least low, which is %g",
		                             call->value[CANNY_LOW]);
	if (call->filter != FILTER_CONVOLVE)
		return ERR_OK;
	if (!call->numbers[CONVOLVE_KERNEL].width)
		return problem_set_parameter(
		    problem, ERR_BAD_PARAMETER, "kernel", "",
		    "convolve needs kernel, as in kernel=1,2,1;2,4,2;1,2,1");
	if (call->value[CONVOLVE_SCALE] == 0)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "scale", "0",
		                             "scale: expected a number other than 0");
	return check_gain(chain, call, problem);
}

/* Bounds the passes over the image: each filter that gathers takes another run of the chain. */
static enum error check_gathering(const struct chain *chain, struct problem *problem)
{
	uint32_t canny = 0, gathering = 0;

	for (uint32_t i = 0; i < chain->count; i++) {
		canny += chain->call[i].filter == FILTER_CANNY;
		gathering += filter_gathers(&chain->call[i]) != GATHER_NONE;
	}
	if (canny > 1 || chain->count + canny * (CHAIN_CANNY_FILTERS - 1) > CHAIN_FILTERS_MAX)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "filters", "canny",
		                             "expected one canny at most, which counts as %d of "
		                             "the %d filters that a chain may have",
		                             CHAIN_CANNY_FILTERS, CHAIN_FILTERS_MAX);
	if (gathering <= CHAIN_GATHERING_MAX)
		return ERR_OK;
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "filters", "",
	                             "expected at most %d filters that look at the whole image "
	                             "first: equalize, canny, and threshold with method=otsu",
	                             CHAIN_GATHERING_MAX);
}

enum error chain_check(const struct chain *chain, struct problem *problem)
{
	enum error e = ERR_OK;

	if (!chain->count)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "filters", "",
		                             "expected at least one filter in filters, luma or "
		                             "chroma, as in filters=gaussian=sigma=1.4,sobel");
	if (!chain->regions.count && (chain->regions.feather || chain->regions.invert))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "regions", "",
		                             "feather and invert need regions, as in "
		                             "regions=40,30,80,100");
	for (uint32_t i = 0; !e && i < chain->count; i++)
		e = check_call(chain, &chain->call[i], problem);
	return e ? e : check_gathering(chain, problem);
}

/* True if the chain has so many coefficients, from this one on. */
static bool has_coefficients(const struct chain *chain, uint32_t first, uint64_t count)
{
	return first <= chain->coefficients_used && count <= chain->coefficients_used - first;
}

/* True if the numbers are among the coefficients and within the parameter's limits. */
static bool rows_valid(const struct chain *chain, const struct parameter *p,
                       const struct numbers *rows)
{
	const uint64_t count = (uint64_t)rows->width * rows->height;

	if (!rows->width != !rows->height || !has_coefficients(chain, rows->first, count))
		return false;
	if (p->type == PARAMETER_MATRIX)
		return rows->width % 2 && rows->height % 2 && rows->width <= p->max &&
		       rows->height <= p->max;
	return numbers_in_range(p, &chain->coefficient[rows->first], count);
}

/* True if what is gathered is nothing, or what a call needs. */
static bool gathered_valid(const struct chain *chain, const struct filter_call *call)
{
	const struct numbers *n = &call->gathered;
	const enum gather gather = filter_gathers(call);
	const uint64_t pages = UINT64_C(1) + call->more_pages;
	uint64_t count;

	if (!n->width && !n->height)
		return pages == 1;
	if (!n->width || !n->height || !gather)
		return false;
	count = filter_gathered_numbers(call, n->width, n->height);
	if (!count || count > EDGES_WORDS_MAX || pages > EDGES_WORDS_MAX / count ||
	    !has_coefficients(chain, n->first, count * pages))
		return false;
	return gather == GATHER_EDGES ||
	       (n->height <= BANDS_MAX &&
	        (n->width == gather_entries(gather, PIXEL_U8) ||
	         n->width == gather_entries(gather, PIXEL_U16)) &&
	        gather_valid(&chain->coefficient[n->first], count * pages));
}

static bool call_valid(const struct chain *chain, const struct filter_call *call)
{
	const struct parameter *p;
	struct problem unwanted;

	if (call->filter >= FILTERS || call->channels >= CHANNELS || call->shares)
		return false;
	for (size_t i = 0; (p = filter_parameter(call->filter, i)); i++) {
		const double value = call->value[i];

		if ((p->type == PARAMETER_MATRIX || p->type == PARAMETER_NUMBERS) &&
		    !rows_valid(chain, p, &call->numbers[i]))
			return false;
		/* NAN (not given) is valid only without a default. */
		if (isnan(value) ? !isnan(p->default_) : !(value >= p->min && value <= p->max))
			return false;
	}
	/* Both rely on values within their limits. */
	return gathered_valid(chain, call) && !check_call(chain, call, &unwanted);
}

enum kernel chain_kernel(const struct chain *chain)
{
	bool named = chain->variant != VARIANT_ANY && chain->variant < VARIANT_REFERENCE;

	return named ? chain->variant - 1 : KERNELS;
}

uint32_t chain_pages(const struct chain *chain)
{
	uint32_t pages = 1;

	for (uint32_t i = 0; i < chain->count; i++)
		if (chain->call[i].more_pages)
			pages = chain->call[i].more_pages + 1;
	return pages;
}

bool chain_valid(const struct chain *chain)
{
	const enum kernel kernel = chain_kernel(chain);
	const uint64_t shapes = (uint64_t)chain->regions.count * REGION_NUMBERS;
	uint32_t pages;

	if (chain->count < 1 || chain->count > CHAIN_FILTERS_MAX || chain->border >= BORDERS ||
	    chain->border_values > BANDS_MAX || chain->variant > VARIANT_GENERAL ||
	    (kernel < KERNELS && !kernel_row(kernel)->operations) ||
	    !has_coefficients(chain, chain->regions.first, shapes) ||
	    !regions_valid(&chain->regions, chain_shapes(chain)))
		return false;
	pages = chain_pages(chain);
	for (uint32_t i = 0; i < chain->count; i++) {
		const struct filter_call *call = &chain->call[i];

		if (!call_valid(chain, call) ||
		    (call->gathered.width && call->more_pages + 1 != pages))
			return false;
	}
	return true;
}

enum error chain_take(int fd, struct chain **chain)
{
	void *data = NULL;
	size_t size = 0;
	const size_t least = offsetof(struct chain, coefficient);
	enum error e = memfd_take(fd, least, CHAIN_SIZE_MAX, &data, &size);

	*chain = data;
	if (!e && (chain_size(*chain) > size || !chain_valid(*chain)))
		e = ERR_INTERNAL;
	if (e) {
		free(data);
		*chain = NULL;
	}
	return e;
}

uint32_t chain_gathering(const struct chain *chain)
{
	uint32_t i = 0;

	while (i < chain->count &&
	       (!filter_gathers(&chain->call[i]) || chain->call[i].gathered.width))
		i++;
	return i;
}

bool chain_has_shares(const struct chain *chain)
{
	uint32_t shares = 0;

	for (uint32_t i = 0; i < chain->count; i++)
		shares |= chain->call[i].shares;
	return shares;
}

/* Makes a share pixels. */
static enum error size_value(struct filter_call *call, const struct parameter *p, size_t i,
                             double side, struct problem *problem)
{
	const double share = call->value[i], value = share / 100 * side;
	char text[32];

	call->value[i] = value;
	call->shares &= ~(1u << i);
	if (value >= p->min && value <= p->max)
		return ERR_OK;
	snprintf(text, sizeof text, "%g%%", share);
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, p->name, text,
	                             "%s: %s of %g pixels, the image's (or roi's) shorter side, is "
	                             "%g; expected %g to %g%s",
	                             p->name, text, side, value, p->min, p->max,
	                             instead_of(p, value));
}

enum error chain_size_to(const struct chain *chain, uint32_t width, uint32_t height,
                         struct chain **sized, struct problem *problem)
{
	const struct parameter *p;
	enum error e = ERR_OK;

	*sized = chain_copy(chain, 0);
	if (!*sized)
		return problem_set(problem, ERR_MEMORY, "no memory for the chain");
	for (uint32_t k = 0; k < chain->count; k++) {
		struct filter_call *call = &(*sized)->call[k];

		for (size_t i = 0; !e && (p = filter_parameter(call->filter, i)); i++)
			if (call->shares >> i & 1)
				e = size_value(call, p, i, width < height ? width : height,
				               problem);
	}
	if (e) {
		free(*sized);
		*sized = NULL;
	}
	return e;
}

/* Appends a filter with default parameters on channels; the chain has room for it. */
static struct filter_call *append(struct chain *chain, enum filter filter, enum channels channels)
{
	struct problem problem;

	if (chain_add_filter(chain, filter_name(filter), &problem))
		return NULL;
	last_call(chain)->channels = channels;
	return last_call(chain);
}

/* Appends what finds the edges of a canny. Those of the luma are those of a grey image, as pixels
 * cannot hold any luma beside any chroma. */
static bool append_canny(struct chain *chain, const struct filter_call *canny)
{
	const bool luma = canny->channels == CHANNELS_LUMA;
	const enum channels channels = luma ? CHANNELS_ALL : canny->channels;
	const double sigma = filter_canny_sigma(canny);
	struct filter_call *call;

	if (luma && !append(chain, FILTER_GRAYSCALE, channels))
		return false;
	call = sigma > 0 ? append(chain, FILTER_GAUSSIAN, channels) : NULL;
	if (call)
		call->value[GAUSSIAN_SIGMA] = sigma;
	call = !call && sigma > 0 ? NULL : append(chain, FILTER_CANNY, channels);
	if (!call)
		return false;
	call->value[CANNY_LOW] = canny->value[CANNY_LOW];
	call->value[CANNY_HIGH] = canny->value[CANNY_HIGH];
	call->value[CANNY_SIGMA] = 0;
	return true;
}

/* True if the chain's variant is a kernel that finds edges. */
static bool names_canny_kernel(const struct chain *chain)
{
	const enum kernel kernel = chain_kernel(chain);

	return kernel < KERNELS && kernel_row(kernel)->operations >> OPERATION_CANNY & 1;
}

struct chain *chain_before(const struct chain *chain, uint32_t call)
{
	const struct filter_call *gathering = &chain->call[call];
	const bool canny = filter_gathers(gathering) == GATHER_EDGES;
	struct chain *before = chain_copy(chain, 0);
	bool complete;

	if (!before)
		return NULL;
	before->regions = (struct regions){0};
	if (before->variant < VARIANT_REFERENCE && !(canny && names_canny_kernel(chain)))
		before->variant = VARIANT_ANY;
	memset(&before->call[call], 0, (chain->count - call) * sizeof *before->call);
	before->count = call;
	if (canny)
		complete = append_canny(before, gathering);
	else
		complete = call || append(before, FILTER_LINEAR, CHANNELS_ALL);
	if (complete)
		return before;
	free(before);
	return NULL;
}

struct chain *chain_gathered(const struct chain *chain, uint32_t call, const double *numbers,
                             uint32_t width, uint32_t height, uint32_t pages)
{
	const bool canny = filter_gathers(&chain->call[call]) == GATHER_EDGES;
	const uint32_t count =
	    pages * (uint32_t)filter_gathered_numbers(&chain->call[call], width, height);
	struct chain *gathered = chain_copy(chain, count);

	if (!gathered)
		return NULL;
	gathered->call[call].more_pages = pages - 1;
	gathered->call[call].gathered =
	    (struct numbers){gathered->coefficients_used, width, height};
	memcpy(gathered->coefficient + gathered->coefficients_used, numbers,
	       count * sizeof *numbers);
	gathered->coefficients_used += count;
	if (canny && names_canny_kernel(chain))
		gathered->variant = VARIANT_ANY; /* it has done its work */
	return gathered;
}

/* Numbers that a call has of a page. */
static uint32_t page_numbers(const struct filter_call *call)
{
	const struct numbers *n = &call->gathered;

	return n->width ? (uint32_t)filter_gathered_numbers(call, n->width, n->height) : 0;
}

struct chain *chain_of_page(const struct chain *chain, uint32_t page)
{
	uint32_t numbers = 0, used = chain->coefficients_used; /* of a page; before all gathered */
	struct chain *of_page;
	size_t given;

	for (uint32_t i = 0; i < chain->count; i++) {
		const struct filter_call *call = &chain->call[i];

		numbers += page_numbers(call);
		if (call->gathered.width && call->gathered.first < used)
			used = call->gathered.first;
	}
	given = offsetof(struct chain, coefficient) + used * sizeof *chain->coefficient;
	of_page = calloc(1, given + numbers * sizeof *chain->coefficient);
	if (!of_page)
		return NULL;
	memcpy(of_page, chain, given);
	of_page->coefficients_used = used + numbers;
	for (uint32_t i = 0; i < chain->count; i++) {
		struct filter_call *call = &of_page->call[i];
		const uint32_t count = page_numbers(call);

		memcpy(of_page->coefficient + used,
		       chain->coefficient + call->gathered.first + (size_t)page * count,
		       count * sizeof *chain->coefficient);
		call->gathered.first = count ? used : 0;
		call->more_pages = 0;
		used += count;
	}
	return of_page;
}

void chain_halo(const struct chain *chain, uint32_t *halo_x, uint32_t *halo_y)
{
	*halo_x = *halo_y = 0;
	for (uint32_t i = 0; i < chain->count; i++) {
		uint32_t x, y;

		filter_radius(&chain->call[i], &x, &y);
		*halo_x += x;
		*halo_y += y;
	}
}

void chain_crops(const struct chain *chain, uint32_t *x, uint32_t *y)
{
	*x = *y = 0;
	if (chain->border == BORDER_CROP)
		chain_halo(chain, x, y);
}

enum error chain_border_pixel(const struct chain *chain, const struct image *image,
                              double pixel[BANDS_MAX], struct problem *problem)
{
	const double full = pixel_type_full_scale(image->type);
	const uint32_t bands = image_plane(image).bands;
	uint32_t given = chain->border_values, colours = image->bands - image->alpha;
	char text[32];

	if (given > 1 && image_planes(image) > 1) {
		snprintf(text, sizeof text, "%u values", given);
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "border_value", text,
		                             "the image has %u bands: give 1 value for all",
		                             image->bands);
	}
	if (given > 1 && given != image->bands && given != colours) {
		snprintf(text, sizeof text, "%u values", given);
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "border_value", text,
		                             "the image has %u bands: give 1 or %u values",
		                             image->bands, image->bands);
	}
	for (uint32_t b = 0; b < bands; b++) {
		if (b >= colours && given < bands)
			pixel[b] = full;
		else
			pixel[b] = given ? chain->border_value[given > 1 ? b : 0] : 0;
		if (image->type == PIXEL_F32 ||
		    (pixel[b] >= 0 && pixel[b] <= full && pixel[b] == floor(pixel[b])))
			continue;
		snprintf(text, sizeof text, "%g", pixel[b]);
		return problem_set_parameter(
		    problem, ERR_BAD_PARAMETER, "border_value", text,
		    "the image's pixels are %s: expected integers from 0 to %g",
		    pixel_type_name(image->type), full);
	}
	return ERR_OK;
}

enum error chain_output_size(const struct chain *chain, const struct image *image, uint32_t *width,
                             uint32_t *height, struct problem *problem)
{
	uint32_t x, y;

	chain_crops(chain, &x, &y);
	if (image->width <= 2 * x || image->height <= 2 * y)
		return problem_set_parameter(
		    problem, ERR_IMAGE_TOO_SMALL, "border", "crop",
		    "the image (or roi) is %ux%u and the filter's window %ux%u: crop "
		    "leaves nothing; choose another border",
		    image->width, image->height, 2 * x + 1, 2 * y + 1);
	*width = image->width - 2 * x;
	*height = image->height - 2 * y;
	return ERR_OK;
}
