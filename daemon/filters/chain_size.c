#include "filters/chain_size.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

_Static_assert((int)FILTER_PARAMETERS_MAX > (int)RESIZE_KERNEL, "each has its value");

/* ---- the sizes of a resize ---- */

/* Returns a side in pixels; NAN: not given. */
static double wanted_side(const struct filter_call *call, size_t i)
{
	return isnan(call->value[i]) ? NAN : fmax(1, floor(call->value[i] + 0.5));
}

static enum error check_side(const char *name, uint32_t from, double to, struct problem *problem)
{
	char text[32];

	if (to >= 1 && to <= IMAGE_SIDE_MAX && to <= (double)from * RESIZE_RATIO_MAX &&
	    to * RESIZE_RATIO_MAX >= from)
		return ERR_OK;
	snprintf(text, sizeof text, "%g", to);
	return filter_refuse(problem, name, text,
	                     "the image's (or roi's) %s is %u pixels and the result's would be %g; "
	                     "expected at most %d, and a ratio from 1/%d to %d",
	                     name, from, to, IMAGE_SIDE_MAX, RESIZE_RATIO_MAX, RESIZE_RATIO_MAX);
}

/* Finds both directions for a source of this size. ERR_BAD_PARAMETER if a side of the result would
 * be out of its limits. */
static enum error find_sizes(const struct filter_call *call, uint32_t width, uint32_t height,
                             struct resizing *across, struct resizing *down,
                             struct problem *problem)
{
	/* Shares of what is cut off that lie left and above, in the order of the choices. */
	static const double left[] = {0.5, 0.5, 1, 1, 1, 0.5, 0, 0, 0},
	                    above[] = {0.5, 0, 0, 0.5, 1, 1, 1, 0.5, 0};
	const double most = call->value[RESIZE_ENLARGE] > 0 ? INFINITY : 1;
	const size_t gravity = (size_t)call->value[RESIZE_GRAVITY];
	const int fit = (int)call->value[RESIZE_FIT];
	const enum resample kernel = (enum resample)call->value[RESIZE_KERNEL];
	const double w = wanted_side(call, RESIZE_WIDTH), h = wanted_side(call, RESIZE_HEIGHT);
	const double x = w / width, y = h / height; /* fmin() and fmax() leave out NAN */
	double scale_x, scale_y, to_x, to_y;
	enum error e;

	scale_x = fmin(fit == RESIZE_COVER ? fmax(x, y) : fmin(x, y), most);
	scale_y = scale_x;
	if (fit == RESIZE_FILL) {
		scale_x = fmin(isnan(x) ? 1 : x, most);
		scale_y = fmin(isnan(y) ? 1 : y, most);
	}
	to_x = fmax(1, floor(width * scale_x + 0.5));
	to_y = fmax(1, floor(height * scale_y + 0.5));
	if (fit == RESIZE_COVER) { /* cut to what was asked for */
		to_x = fmin(to_x, w);
		to_y = fmin(to_y, h);
	}
	e = check_side("width", width, to_x, problem);
	if (!e)
		e = check_side("height", height, to_y, problem);
	if (e)
		return e;
	*across = (struct resizing){width, (uint32_t)to_x, 0, width / to_x, kernel};
	*down = (struct resizing){height, (uint32_t)to_y, 0, height / to_y, kernel};
	if (fit == RESIZE_COVER) {
		across->step = down->step = 1 / scale_x;
		across->first = fmax(0, width - to_x / scale_x) * left[gravity];
		down->first = fmax(0, height - to_y / scale_x) * above[gravity];
		if (scale_x == 1) { /* a mere cut keeps its pixels */
			across->first = floor(across->first);
			down->first = floor(down->first);
		}
	}
	return ERR_OK;
}

static enum error check_resize(const struct filter_call *call, const double *,
                               struct problem *problem)
{
	const bool w = !isnan(call->value[RESIZE_WIDTH]), h = !isnan(call->value[RESIZE_HEIGHT]);

	if (!w && !h)
		return filter_refuse(problem, "width", "",
		                     "expected width, height or both, as in width=320");
	if (call->value[RESIZE_FIT] == RESIZE_COVER && !(w && h))
		return filter_refuse(problem, w ? "height" : "width", "",
		                     "expected both sides with fit=cover");
	return ERR_OK;
}

const struct filter_row filter_of_RESIZE = {.check = check_resize, .smoothing = true};

/* ---- percentages ---- */

/* Makes a share pixels. */
static enum error size_value(struct filter_call *call, const struct parameter *p, size_t i,
                             const uint32_t size[2], struct problem *problem)
{
	const bool resizes = call->filter == FILTER_RESIZE;
	const double side = resizes ? size[i == RESIZE_HEIGHT] : MIN(size[0], size[1]);
	const double share = call->value[i], value = fmax(share / 100 * side, resizes ? p->min : 0);
	char text[32];

	call->value[i] = value;
	call->shares &= ~(1u << i);
	if (value >= p->min && value <= p->max)
		return ERR_OK;
	snprintf(text, sizeof text, "%g%%", share);
	return filter_refuse(
	    problem, p->name, text,
	    "%s of %g pixels, the %s side of the image (or roi), is %g; expected %g to %g%s", text,
	    side, resizes ? p->name : "shorter", value, p->min, p->max, chain_advice(p, value));
}

enum error chain_size_to(const struct chain *chain, uint32_t width, uint32_t height,
                         struct chain **sized, struct problem *problem)
{
	const struct parameter *p;
	struct resizing across, down;
	uint32_t size[2] = {width, height}; /* the image's before the call */
	enum error e = ERR_OK;

	*sized = chain_copy(chain, 0);
	if (!*sized)
		return no_memory(problem, "for the chain");
	for (uint32_t k = 0; !e && k < chain->count; k++) {
		struct filter_call *call = &(*sized)->call[k];

		for (size_t i = 0; !e && (p = filter_parameter(call->filter, i)); i++)
			if (call->shares >> i & 1)
				e = size_value(call, p, i, size, problem);
		if (e || call->filter != FILTER_RESIZE)
			continue;
		e = find_sizes(call, size[0], size[1], &across, &down, problem);
		size[0] = across.to;
		size[1] = down.to;
	}
	if (e) {
		free(*sized);
		*sized = NULL;
	}
	return e;
}

/* ---- from a result back to its image ---- */

/* Finds both directions of a resize, whose sizes are those of the original. */
static enum error find_resizing(const struct filter_call *call, const struct image *image,
                                struct resizing scale[2], struct problem *problem)
{
	const struct draft *d = &image->draft;
	enum error e;

	if (!d->width)
		return find_sizes(call, image->width, image->height, &scale[0], &scale[1], problem);
	e = find_sizes(call, d->width, d->height, &scale[0], &scale[1], problem);
	if (e)
		return e;
	resizing_from_draft(&scale[0], image->width, d->before[0], d->after[0]);
	resizing_from_draft(&scale[1], image->height, d->before[1], d->after[1]);
	return ERR_OK;
}

uint32_t chain_draft(const struct chain *chain, const struct image *image)
{
	struct resizing scale[2];
	uint32_t by = DRAFT_MAX;

	if (!chain->count || chain->call[0].filter != FILTER_RESIZE ||
	    chain->call[0].value[RESIZE_KERNEL] == RESAMPLE_NEAREST ||
	    find_sizes(&chain->call[0], image->width, image->height, &scale[0], &scale[1], NULL))
		return 1;
	while (by > 1 && fmin(scale[0].step, scale[1].step) < 2 * by)
		by /= 2;
	return by;
}

enum error chain_geometry(const struct chain *chain, const struct image *image, struct geometry *g,
                          struct problem *problem)
{
	const uint32_t at = chain_resizing(chain);

	*g = (struct geometry){.resizes = at < chain->count,
	                       .wraps = chain->border == BORDER_WRAP,
	                       .size = {image->width, image->height}};
	chain_halo(chain, &g->halo[0], &g->halo[1]);
	if (g->resizes) {
		const enum error e = find_resizing(&chain->call[at], image, g->scale, problem);

		chain_radii(chain, at, chain->count, &g->after[0], &g->after[1]);
		g->size[0] = g->scale[0].to;
		g->size[1] = g->scale[1].to;
		return e;
	}
	if (chain->border == BORDER_CROP)
		memcpy(g->crop, g->halo, sizeof g->crop);
	if (image->width <= 2 * g->crop[0] || image->height <= 2 * g->crop[1])
		return problem_set_parameter(problem, ERR_IMAGE_TOO_SMALL, "border", "crop",
		                             "the image (or roi) is %ux%u and the filter's window "
		                             "%ux%u: crop leaves nothing; choose another border",
		                             image->width, image->height, 2 * g->crop[0] + 1,
		                             2 * g->crop[1] + 1);
	g->size[0] -= 2 * g->crop[0];
	g->size[1] -= 2 * g->crop[1];
	return ERR_OK;
}

struct extent geometry_source(const struct geometry *g, int direction, uint32_t first,
                              uint32_t count)
{
	struct extent result = {(int32_t)first, count};
	int32_t begin = (int32_t)first - (int32_t)g->after[direction];
	int32_t end = (int32_t)(first + count + g->after[direction]);

	if (!g->resizes)
		return result;
	if (!g->wraps) { /* pixels outside the result are made from those inside */
		begin = MAX(begin, 0);
		end = MIN(end, (int32_t)g->size[direction]);
	}
	result =
	    resizing_source(&g->scale[direction], (struct extent){begin, (uint32_t)(end - begin)});
	/* One more on each side: the border rule may find any outside pixel among these. */
	return (struct extent){result.first - 1, result.count + 2};
}

enum error chain_output_size(const struct chain *chain, const struct image *image, uint32_t *width,
                             uint32_t *height, struct problem *problem)
{
	struct geometry g;
	const enum error e = chain_geometry(chain, image, &g, problem);

	*width = g.size[0];
	*height = g.size[1];
	return e;
}
