#include "filters/chain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>

#include "base/file.h"
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

struct filter_call *chain_append(struct chain *chain, enum filter filter, enum channels channels)
{
	const struct parameter *p;

	chain->count++;
	*last_call(chain) = (struct filter_call){.filter = filter, .channels = channels};
	for (size_t i = 0; (p = filter_parameter(filter, i)); i++)
		last_call(chain)->value[i] = p->default_;
	return last_call(chain);
}

enum error chain_add_filter(struct chain *chain, const char *name, struct problem *problem)
{
	enum filter filter = filter_parse(name);

	if (filter == FILTERS)
		return filter_unknown(name, problem);
	if (chain->count == CHAIN_FILTERS_MAX)
		return bad_parameter(problem, "filters", name, "a chain has at most %d filters",
		                     CHAIN_FILTERS_MAX);
	chain_append(chain, filter, CHANNELS_ALL);
	return ERR_OK;
}

bool chain_knows_parameter(const struct chain *chain, const char *name)
{
	size_t i;

	return filter_find_parameter(chain->call[chain->count - 1].filter, name, &i) != NULL;
}

/* Reads a finite number, and moves on behind it. */
static bool parse_number(const char **text, double *number)
{
	const size_t length = strspn(*text, "0123456789+-.eE");
	const char *begin = *text;
	char *end;

	*number = strtod(begin, &end);
	*text = end;
	return length && end == begin + length && isfinite(*number);
}

const char *chain_advice(const struct parameter *p, double value)
{
	return parameter_takes_share(p) && p->filter != FILTER_RESIZE && value > p->max
	           ? "; instead, use pixelate, or a chain of several gaussians (the squares of "
	             "their sigmas add up)"
	           : "";
}

static enum error set_value(struct chain *chain, const struct parameter *p, size_t i,
                            const char *text, struct problem *problem)
{
	const struct value_kind kind = parameter_kind(p);
	const char *unit = text;
	double value = 0;
	/* "2.5%", up to 100%; of a resize "250%", too */
	const double most = p->filter == FILTER_RESIZE ? 100 * RESIZE_RATIO_MAX : 100;
	const bool share = parameter_takes_share(p) && parse_number(&unit, &value) &&
	                   !strcmp(unit, "%") && value > 0 && value <= most;
	const enum error e = share ? ERR_OK : value_parse(&kind, p->name, text, &value, problem);

	if (e) {
		const size_t said = strlen(problem->detail);

		snprintf(problem->detail + said, sizeof problem->detail - said, "%s",
		         chain_advice(p, value));
		return e;
	}
	last_call(chain)->value[i] = value;
	last_call(chain)->shares &= ~(1u << i);
	last_call(chain)->shares |= (uint32_t)share << i;
	return ERR_OK;
}

/* Parses a row of a matrix, up to ';' or the end, to `coefficient`, with space for `room` numbers.
 * Returns the count of numbers; -1 if the text is not a row of numbers; -2 if they do not fit. */
static int parse_row(const char **text, double *coefficient, size_t room)
{
	int count = 0;

	for (;;) {
		*text += strspn(*text, " ,");
		if (!**text || **text == ';')
			return count;
		if ((size_t)count >= room)
			return -2;
		if (!parse_number(text, &coefficient[count]) || fabs(coefficient[count]) > 1e9 ||
		    (**text && !strchr(" ,;", **text)))
			return -1;
		count++;
	}
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
			return bad_parameter(problem, p->name, text,
			                     "all matrices of a chain together have at most %d "
			                     "coefficients, and each has at most %dx%d",
			                     CHAIN_GIVEN_MAX, MATRIX_SIDE_MAX, MATRIX_SIDE_MAX);
		if (count == -1 && p->type == PARAMETER_MATRIX)
			return filter_refuse(problem, p->name, text,
			                     "expected numbers from -1e9 to 1e9, as in "
			                     "1,2,1;2,4,2;1,2,1; row %u has others",
			                     rows->height + 1);
		if (count <= 0 && p->type == PARAMETER_NUMBERS)
			return filter_refuse(problem, p->name, text,
			                     "expected numbers from %g to %g; not so in row %u",
			                     p->min, p->max, rows->height + 1);
		if (count <= 0 || (rows->height && (uint32_t)count != rows->width))
			return filter_refuse(problem, p->name, text,
			                     "expected rows of equal length, as in "
			                     "1,2,1;2,4,2;1,2,1; row %u differs",
			                     rows->height + 1);
		rows->width = (uint32_t)count;
		rows->height++;
		used += (size_t)count;
		if (*at != ';')
			return ERR_OK;
	}
}

/* Checks that numbers are within the limits of the parameter. */
static enum error check_rows(const struct parameter *p, const struct numbers *rows,
                             const double *number, const char *text, struct problem *problem)
{
	if (p->type == PARAMETER_MATRIX) {
		if (rows->width % 2 && rows->height % 2 && rows->width <= p->max &&
		    rows->height <= p->max)
			return ERR_OK;
		return filter_refuse(problem, p->name, text,
		                     "expected odd sides from %g to %g, not %ux%u", p->min, p->max,
		                     rows->width, rows->height);
	}
	for (size_t i = 0; i < (size_t)rows->width * rows->height; i++)
		if (!(number[i] >= p->min && number[i] <= p->max))
			return filter_refuse(problem, p->name, text,
			                     "expected numbers from %g to %g%s%s", p->min, p->max,
			                     *p->unit ? ", in " : "", p->unit);
	return ERR_OK;
}

static enum error set_rows(struct chain *chain, const struct parameter *p, size_t i,
                           const char *text, struct problem *problem)
{
	const uint32_t used = chain->coefficients_used;
	double *number = &chain->coefficient[used];
	struct numbers rows = {.first = used};
	enum error e = parse_rows(chain, p, text, number, &rows, problem);

	if (!e)
		e = check_rows(p, &rows, number, text, problem);
	if (e)
		return e;
	last_call(chain)->numbers[i] = rows;
	chain->coefficients_used += rows.width * rows.height;
	return ERR_OK;
}

enum error chain_set_parameter(struct chain *chain, const char *name, const char *text,
                               struct problem *problem)
{
	size_t i;
	const struct parameter *p = filter_find_parameter(last_call(chain)->filter, name, &i);
	char list[128] = "";

	if (p && (p->type == PARAMETER_MATRIX || p->type == PARAMETER_NUMBERS))
		return set_rows(chain, p, i, text, problem);
	if (p)
		return set_value(chain, p, i, text, problem);
	for (i = 0; (p = filter_parameter(last_call(chain)->filter, i)); i++)
		list_add(list, sizeof list, p->name);
	return bad_parameter(problem, name, text, "unknown parameter; %s takes %s",
	                     known_filters[last_call(chain)->filter].name, *list ? list : "none");
}

enum error chain_parse_for(struct chain *chain, enum channels channels, const char *parameter,
                           const char *text, struct problem *problem)
{
	uint32_t before = chain->count;
	char *copy, *rest;
	enum error e = ERR_OK;

	if (!*text)
		return filter_refuse(
		    problem, parameter, text,
		    "expected at least one filter, as in %s=gaussian=sigma=1.4,sobel", parameter);
	copy = strdup(text);
	if (!copy)
		return no_memory(problem, "for the chain");
	for (rest = copy; !e && rest;) {
		char *link = strsep(&rest, ","); /* NAME=key=value:key=value */

		e = chain_add_filter(chain, strsep(&link, "="), problem);
		while (!e && link) {
			char *value = strsep(&link, ":"), *key = strsep(&value, "=");

			e = value ? chain_set_parameter(chain, key, value, problem)
			          : bad_parameter(problem, "filters", key,
			                          "expected parameters as key=value, separated by "
			                          "':', as in gaussian=sigma=2");
		}
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
		return filter_refuse(problem, "border_value", text,
		                     "expected one number, or one for each band, separated by "
		                     "commas, as in 255,0,0");
	chain->border_values = (uint32_t)count;
	return ERR_OK;
}

enum error chain_set_regions(struct chain *chain, const char *text, struct problem *problem)
{
	const uint32_t used = chain->coefficients_used;
	enum error e = regions_parse(text, &chain->coefficient[used], CHAIN_GIVEN_MAX - used,
	                             &chain->regions, problem);

	if (e)
		return e;
	chain->regions.first = used;
	chain->coefficients_used += (uint32_t)regions_numbers(&chain->regions);
	return ERR_OK;
}

const double *chain_shapes(const struct chain *chain)
{
	return &chain->coefficient[chain->regions.first];
}

static enum error check_call(const struct chain *chain, const struct filter_call *call,
                             struct problem *problem)
{
	const struct filter_row *row = known_filters[call->filter].row;
	const bool alpha = call->channels == CHANNELS_ALPHA;
	const bool chroma = call->channels == CHANNELS_CHROMA;
	enum error e = row->check ? row->check(call, chain->coefficient, problem) : ERR_OK;

	if (e)
		return e;
	if (filter_gathers(call) && (alpha || chroma))
		return filter_refuse(problem, "channels", "",
		                     "expected all, color, red, green, blue or luma for a filter "
		                     "that counts an image's values");
	if ((row->mixes || filter_by_colour(call) > 1) &&
	    (alpha ? !row->makes_alpha || !row->makes_alpha(call)
	           : chroma || call->channels == CHANNELS_LUMA))
		return filter_refuse(problem, "channels", "",
		                     "expected all, color, red, green or blue for a filter that "
		                     "mixes colours or has numbers for each");
	if (call->filter == FILTER_RESIZE && call->channels != CHANNELS_ALL)
		return filter_refuse(problem, "channels", "",
		                     "expected all for resize, which changes the whole image");
	return ERR_OK;
}

uint32_t chain_resizing(const struct chain *chain)
{
	uint32_t i = 0;

	while (i < chain->count && chain->call[i].filter != FILTER_RESIZE)
		i++;
	return i;
}

void chain_radii(const struct chain *chain, uint32_t first, uint32_t end, uint32_t *sum_x,
                 uint32_t *sum_y)
{
	*sum_x = *sum_y = 0;
	for (uint32_t i = first; i < end; i++) {
		uint32_t x, y;

		filter_radius(&chain->call[i], &x, &y);
		*sum_x += x;
		*sum_y += y;
	}
}

/* Checks a resize within its chain. */
static enum error check_resizing(const struct chain *chain, struct problem *problem)
{
	const uint32_t at = chain_resizing(chain);
	uint32_t count = 0, x, y;

	for (uint32_t i = 0; i < chain->count; i++)
		count += chain->call[i].filter == FILTER_RESIZE;
	chain_radii(chain, at, chain->count, &x, &y);
	if (count > 1)
		return bad_parameter(problem, "filters", "resize",
		                     "a chain has at most one resize");
	if (count && chain->border == BORDER_CROP)
		return bad_parameter(
		    problem, "border", "crop",
		    "expected another border with resize, whose size is that of the result");
	if (count && chain->regions.count && chain->border == BORDER_WRAP)
		return bad_parameter(problem, "border", "wrap",
		                     "expected another border with regions and resize");
	if (count && chain->border == BORDER_WRAP && (x || y) &&
	    chain->call[at].value[RESIZE_FIT] == RESIZE_COVER)
		return bad_parameter(problem, "border", "wrap",
		                     "expected another border for windows after fit=cover, which "
		                     "cuts off what they would see");
	if (count && !at && chain->regions.count)
		return bad_parameter(
		    problem, "regions", "",
		    "regions are for the filters before resize, and there is none");
	return ERR_OK;
}

enum error chain_check(const struct chain *chain, struct problem *problem)
{
	uint32_t canny = 0, gathering = 0;
	enum error e;

	if (!chain->count)
		return bad_parameter(problem, "filters", "",
		                     "expected at least one filter in filters, luma or chroma, as "
		                     "in filters=gaussian=sigma=1.4,sobel");
	if (!chain->regions.count && (chain->regions.feather || chain->regions.invert))
		return bad_parameter(problem, "regions", "",
		                     "feather and invert need regions, as in regions=40,30,80,100; "
		                     "invert, those or a mask");
	for (uint32_t i = 0; i < chain->count; i++) {
		e = check_call(chain, &chain->call[i], problem);
		if (e)
			return e;
		canny += chain->call[i].filter == FILTER_CANNY;
		gathering += filter_gathers(&chain->call[i]) != GATHER_NONE;
	}
	e = check_resizing(chain, problem);
	if (e)
		return e;
	/* Bounds the passes over the image, since each filter that gathers takes another run. */
	if (canny > 1 || chain->count + canny * (CHAIN_CANNY_FILTERS - 1) > CHAIN_FILTERS_MAX)
		return bad_parameter(problem, "filters", "canny",
		                     "expected one canny at most, which counts as %d of the %d "
		                     "filters that a chain may have",
		                     CHAIN_CANNY_FILTERS, CHAIN_FILTERS_MAX);
	if (gathering <= CHAIN_GATHERING_MAX)
		return ERR_OK;
	return bad_parameter(problem, "filters", "",
	                     "expected at most %d filters that look at the whole image first: "
	                     "equalize, canny, and threshold with method=otsu",
	                     CHAIN_GATHERING_MAX);
}

/* Returns true if the chain has so many coefficients, from this one on. */
static bool has_coefficients(const struct chain *chain, uint32_t first, uint64_t count)
{
	return first <= chain->coefficients_used && count <= chain->coefficients_used - first;
}

/* Returns true if nothing is gathered, or exactly the data that a call needs of some image of the
 * size that it names. */
static bool gathered_valid(const struct chain *chain, const struct filter_call *call)
{
	const struct numbers *n = &call->gathered;
	const struct gathering gathering = filter_gathering(call);
	const uint64_t pages = UINT64_C(1) + call->more_pages;
	const uint64_t count = (uint64_t)n->width * n->height;
	struct image from = {.width = call->gathered_from[0], .height = call->gathered_from[1]};
	bool fits = false;

	if (!n->width && !n->height)
		return pages == 1;
	if (!count || !gathering.kind || count > GATHERED_MAX || pages > GATHERED_MAX / count ||
	    !has_coefficients(chain, n->first, count * pages))
		return false;
	for (from.bands = 1; from.bands <= BANDS_MAX; from.bands++)
		for (from.type = 0; from.type < PIXEL_TYPES; from.type++) {
			uint32_t width, height;

			gather_size(&gathering, &from, &width, &height);
			fits |= image_valid(&from) && width == n->width && height == n->height;
		}
	return fits && gather_valid((enum gather)gathering.kind, &chain->coefficient[n->first],
	                            count * pages);
}

static bool call_valid(const struct chain *chain, const struct filter_call *call)
{
	const struct parameter *p;

	if (call->filter >= FILTERS || call->channels >= CHANNELS || call->shares)
		return false;
	for (size_t i = 0; (p = filter_parameter(call->filter, i)); i++) {
		const struct numbers *rows = &call->numbers[i];
		const uint64_t count = (uint64_t)rows->width * rows->height;
		const double value = call->value[i];

		if ((p->type == PARAMETER_MATRIX || p->type == PARAMETER_NUMBERS) &&
		    (!rows->width != !rows->height ||
		     !has_coefficients(chain, rows->first, count) ||
		     check_rows(p, rows, &chain->coefficient[rows->first], "", NULL)))
			return false;
		/* NAN (not given) is valid only without a default. */
		if (isnan(value) ? !isnan(p->default_) : !(value >= p->min && value <= p->max))
			return false;
	}
	/* Both rely on values within their limits. */
	return gathered_valid(chain, call) && !check_call(chain, call, NULL);
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
	uint32_t pages;

	if (chain->count < 1 || chain->count > CHAIN_FILTERS_MAX || chain->border >= BORDERS ||
	    chain->border_values > BANDS_MAX || chain->variant > VARIANT_GENERAL ||
	    (kernel < KERNELS && !kernel_row(kernel)->operations) ||
	    !has_coefficients(chain, chain->regions.first, regions_numbers(&chain->regions)) ||
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
	struct stat status;
	size_t size;
	enum error e = ERR_OK;

	*chain = NULL;
	if (fstat(fd, &status) || status.st_size < 0 || (uint64_t)status.st_size > CHAIN_SIZE_MAX)
		return ERR_IO;
	size = (size_t)status.st_size;
	*chain = calloc(1, MAX(size, offsetof(struct chain, coefficient)));
	if (!*chain)
		return ERR_MEMORY;
	if (!file_read(fd, *chain, size, 0))
		e = ERR_IO;
	else if (chain_size(*chain) > size || !chain_valid(*chain))
		e = ERR_INTERNAL;
	if (e) {
		free(*chain);
		*chain = NULL;
	}
	return e;
}

bool chain_has_shares(const struct chain *chain)
{
	uint32_t shares = 0;

	for (uint32_t i = 0; i < chain->count; i++)
		shares |= chain->call[i].shares;
	return shares;
}

void chain_halo(const struct chain *chain, uint32_t *halo_x, uint32_t *halo_y)
{
	chain_radii(chain, 0, chain_resizing(chain), halo_x, halo_y);
}

enum error chain_border_pixel(const struct chain *chain, const struct image *image,
                              double pixel[BANDS_MAX], struct problem *problem)
{
	const double full = pixel_type_rows[image->type].full_scale;
	const uint32_t bands = image_plane(image).bands;
	uint32_t given = chain->border_values, colours = image->bands - image->alpha;
	char text[32];

	snprintf(text, sizeof text, "%u values", given);
	if (given > 1 && image_planes(image) > 1)
		return bad_parameter(problem, "border_value", text,
		                     "the image has %u bands: give 1 value for all", image->bands);
	if (given > 1 && given != image->bands && given != colours)
		return bad_parameter(problem, "border_value", text,
		                     "the image has %u bands: give 1 or %u values", image->bands,
		                     image->bands);
	for (uint32_t b = 0; b < bands; b++) {
		if (b >= colours && given < bands)
			pixel[b] = full;
		else
			pixel[b] = given ? chain->border_value[given > 1 ? b : 0] : 0;
		if (image->type == PIXEL_F32 ||
		    (pixel[b] >= 0 && pixel[b] <= full && pixel[b] == floor(pixel[b])))
			continue;
		snprintf(text, sizeof text, "%g", pixel[b]);
		return bad_parameter(problem, "border_value", text,
		                     "the image's pixels are %s: expected integers from 0 to %g",
		                     pixel_type_rows[image->type].name, full);
	}
	return ERR_OK;
}
