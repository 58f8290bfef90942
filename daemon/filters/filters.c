#include "filters/filters.h"

#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "base/text.h"

const struct known_filter known_filters[FILTERS] = {
#define FILTER(symbol, name, operation, text)                                                      \
	{name, OPERATION_##operation, text, &filter_of_##symbol},
#include "filters/filters.def"
};

static const struct parameter parameters[] = {
#define PARAMETER(filter, symbol, name, type, min, max, default_, unit, text)                      \
	{FILTER_##filter, name, PARAMETER_##type, min, max, default_, unit, text},
#include "filters/filters.def"
};

#define PARAMETER(filter, symbol, ...)                                                             \
	_Static_assert((int)filter##_##symbol < (int)FILTER_PARAMETERS_MAX, "a call has room");
#include "filters/filters.def"

const char *const channel_names[CHANNELS] = {
    [CHANNELS_ALL] = "all",   [CHANNELS_COLOR] = "color",   [CHANNELS_ALPHA] = "alpha",
    [CHANNELS_RED] = "red",   [CHANNELS_GREEN] = "green",   [CHANNELS_BLUE] = "blue",
    [CHANNELS_LUMA] = "luma", [CHANNELS_CHROMA] = "chroma",
};

enum filter filter_parse(const char *name)
{
	enum filter filter = 0;

	while (filter < FILTERS && strcmp(name, known_filters[filter].name))
		filter++;
	return filter;
}

/* Names of filters in other tools, and ours. */
static const char *const elsewhere[][2] = {
    {"blur", "gaussian"},
    {"gaussblur", "gaussian"},
    {"smooth", "gaussian"},
    {"boxblur", "box"},
    {"mean", "box"},
    {"edge", "sobel"},
    {"edges", "canny"},
    {"laplace", "laplacian"},
    {"brightness", "linear"},
    {"contrast", "linear"},
    {"saturation", "colormatrix"},
    {"hue", "colormatrix"},
    {"modulate", "colormatrix"},
    {"sepia", "colormatrix"},
    {"negate", "invert"},
    {"gray", "grayscale"},
    {"thumbnail", "resize"},
    {"scale", "resize"},
    {"denoise", "median"},
    {"despeckle", "median"},
    {"normalize", "equalize"},
    {"clahe", "equalize"},
    {"binarize", "threshold"},
    {"mosaic", "pixelate"},
};

enum error filter_unknown(const char *name, struct problem *problem)
{
	enum filter nearest = FILTERS; /* none is near */
	size_t least = TEXT_NEAR_MAX;
	char list[352] = "";

	for (enum filter f = 0; f < FILTERS; f++) {
		list_add(list, sizeof list, known_filters[f].name);
		if (text_is_nearer(name, known_filters[f].name, &least))
			nearest = f;
	}
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (text_is_nearer(name, elsewhere[i][0], &least))
			nearest = filter_parse(elsewhere[i][1]);
	if (!*name)
		return bad_parameter(problem, "filter", name,
		                     "a filter without a name; the filters are %s", list);
	if (nearest == FILTERS)
		return problem_set_parameter(problem, ERR_UNKNOWN_FILTER, "filter", name,
		                             "the filters are %s", list);
	return problem_set_parameter(problem, ERR_UNKNOWN_FILTER, "filter", name,
	                             "did you mean %s? GET /v1/filters lists them all",
	                             known_filters[nearest].name);
}

const struct parameter *filter_parameter(enum filter filter, size_t i)
{
	for (size_t row = 0; row < sizeof parameters / sizeof *parameters; row++)
		if (parameters[row].filter == filter && i-- == 0)
			return &parameters[row];
	return NULL;
}

const struct parameter *filter_find_parameter(enum filter filter, const char *name, size_t *i)
{
	const struct parameter *p;

	for (*i = 0; (p = filter_parameter(filter, *i)); ++*i)
		if (!strcmp(p->name, name))
			return p;
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

void filter_radius(const struct filter_call *call, uint32_t *radius_x, uint32_t *radius_y)
{
	const struct filter_row *row = known_filters[call->filter].row;
	const uint32_t number = row->window.number;
	const double value = call->value[row->window.parameter];

	if (row->radius) {
		row->radius(call, radius_x, radius_y);
		return;
	}
	switch (row->window.by) {
	case RADIUS_IS:
		*radius_x = number;
		break;
	case BY_WIDTH:
		*radius_x = number * ((uint32_t)value - 1) / 2;
		break;
	case BY_VALUE:
		*radius_x = (uint32_t)ceil(number * value);
		break;
	case BY_LATTICE:
		*radius_x = filter_gaussian_radius(value);
		break;
	}
	*radius_y = *radius_x;
}

/* Returns the sigma of a Gaussian that is not cut off; 0 for all other calls. */
static double lattice_sigma(const struct filter_call *call)
{
	const struct filter_row *row = known_filters[call->filter].row;

	if (row->window.by == BY_LATTICE)
		return call->value[row->window.parameter];
	return row->sigma ? row->sigma(call) : 0;
}

struct lattice filter_lattice(const struct filter_call *call)
{
	return lattice_for(lattice_sigma(call));
}

enum gather filter_gathers(const struct filter_call *call)
{
	const struct filter_row *row = known_filters[call->filter].row;

	return row->gathers ? row->gathers(call) : GATHER_NONE;
}

struct gathering filter_gathering(const struct filter_call *call)
{
	struct gathering gathering = {.kind = filter_gathers(call),
	                              .luma = call->channels == CHANNELS_LUMA};
	const double tiles = call->value[EQUALIZE_TILES], clip = call->value[EQUALIZE_CLIP];

	if (gathering.kind == GATHER_TILES) {
		gathering.tiles = isnan(tiles) ? 8 : (uint32_t)tiles;
		gathering.clip = isnan(clip) ? 2 : clip;
	}
	return gathering;
}

void filter_set_plane(const struct filter_call *call, const double *coefficients,
                      struct operation *op)
{
	op->plane = coefficients + call->gathered.first;
	op->plane_words = (size_t)call->gathered.width * call->gathered.height;
	op->plane_width = call->gathered_from[0];
	op->plane_height = call->gathered_from[1];
}

enum operation_kind filter_call_operation(const struct filter_call *call)
{
	const struct filter_row *row = known_filters[call->filter].row;

	return row->kind ? row->kind(call) : known_filters[call->filter].operation;
}

uint32_t filter_kernels(enum filter filter)
{
	return operation_kernels(known_filters[filter].operation) | known_filters[filter].row->also;
}

uint32_t filter_by_colour(const struct filter_call *call)
{
	const struct filter_row *row = known_filters[call->filter].row;
	const enum gather gather = filter_gathers(call);
	uint32_t colours = 0;

	if (gather)
		return gather == GATHER_EDGES ? 0 : call->gathered.height;
	for (int i = 0; i < FILTER_PARAMETERS_MAX; i++)
		if (row->by_colour >> i & 1)
			colours = MAX(colours, row->in_rows ? call->numbers[i].height
			                                    : call->numbers[i].width);
	return colours;
}

enum error filter_lower(const struct filter_call *call, const double *coefficients,
                        struct operation *op)
{
	const struct filter_row *row = known_filters[call->filter].row;

	*op = (struct operation){.kind = filter_call_operation(call),
	                         .smoothing = row->smoothing,
	                         .signed_output = row->signed_output,
	                         .lattice = filter_lattice(call),
	                         .gain = 1};
	op->sigma = op->lattice.stride ? lattice_sigma(call) : 0;
	filter_radius(call, &op->radius_x, &op->radius_y);
	if (row->size)
		row->size(call, op);
	if (operation_init(op))
		return ERR_MEMORY;
	if (row->lower)
		row->lower(call, op);
	if (row->lower_numbers)
		row->lower_numbers(call, coefficients, op);
	return ERR_OK;
}
