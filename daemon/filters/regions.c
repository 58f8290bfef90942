/* A shape consists of the pixels whose centres lie in it, tested with integers, so that devices
 * agree. */
#include "filters/regions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filters/filters.h"

/* Squares of an ellipse's sides, multiplied, fit 64 bits. */
enum { ELLIPSE_SIDE_MAX = 32768 };

/* The largest magnitude of x and y after they have been moved by those of a ROI. */
enum { PLACE_MAX = 1 << 24 };

static const char *const prefixes[REGION_KINDS] = {
    [REGION_RECTANGLE] = "",
    [REGION_ELLIPSE] = "ellipse:",
};

static bool in_range(double value, double min, double max)
{
	return value >= min && value <= max && value == floor(value);
}

static bool shape_valid(const double *shape)
{
	const double side =
	    shape[REGION_KIND] == REGION_ELLIPSE ? ELLIPSE_SIDE_MAX : (double)IMAGE_SIDE_MAX;

	return in_range(shape[REGION_KIND], 0, REGION_KINDS - 1) &&
	       in_range(shape[REGION_X], -PLACE_MAX, PLACE_MAX) &&
	       in_range(shape[REGION_Y], -PLACE_MAX, PLACE_MAX) &&
	       in_range(shape[REGION_WIDTH], 1, side) && in_range(shape[REGION_HEIGHT], 1, side);
}

/* Reads one shape, up to ';' or the end, and advances to there. */
static bool parse_shape(const char **text, double shape[REGION_NUMBERS])
{
	const size_t length = strcspn(*text, ";");
	char word[64], rest;
	enum region_kind kind = REGION_KINDS - 1;
	int x, y, width, height;

	if (length >= sizeof word)
		return false;
	memcpy(word, *text, length);
	word[length] = '\0';
	*text += length;
	while (strncmp(word, prefixes[kind], strlen(prefixes[kind])))
		kind--; /* the first has no prefix */

	const char *numbers = word + strlen(prefixes[kind]);

	if (strspn(numbers, "-0123456789,") != strlen(numbers) ||
	    sscanf(numbers, "%8d,%8d,%8d,%8d%c", &x, &y, &width, &height, &rest) != 4)
		return false;
	shape[REGION_KIND] = kind;
	shape[REGION_X] = x;
	shape[REGION_Y] = y;
	shape[REGION_WIDTH] = width;
	shape[REGION_HEIGHT] = height;
	return shape_valid(shape) && abs(x) <= IMAGE_SIDE_MAX && abs(y) <= IMAGE_SIDE_MAX;
}

enum error regions_parse(const char *text, double *numbers, size_t room, uint32_t *count,
                         struct problem *problem)
{
	const char *at = text;
	size_t used = 0;

	for (*count = 0;; at++, used += REGION_NUMBERS) {
		if (*count == REGIONS_MAX || room - used < REGION_NUMBERS)
			return filter_refuse(problem, "regions", text, "expected at most %d",
			                     REGIONS_MAX);
		if (!parse_shape(&at, numbers + used))
			return filter_refuse(
			    problem, "regions", text,
			    "expected x,y,width,height or ellipse:x,y,width,height in pixels, "
			    "separated by ';', with sides of at least 1 (of an ellipse at most "
			    "%d), as in 40,30,80,100;ellipse:10,10,64,64; number %u differs",
			    ELLIPSE_SIDE_MAX, *count + 1);
		++*count;
		if (!*at)
			return ERR_OK;
	}
}

void regions_move(const struct regions *regions, double *numbers, int x, int y)
{
	for (uint32_t i = 0; i < regions->count; i++, numbers += REGION_NUMBERS) {
		numbers[REGION_X] += x;
		numbers[REGION_Y] += y;
	}
}

bool regions_valid(const struct regions *regions, const double *numbers)
{
	if (regions->count > REGIONS_MAX || regions->invert > 1 ||
	    regions->feather > REGIONS_FEATHER_MAX)
		return false;
	for (uint32_t i = 0; i < regions->count; i++)
		if (!shape_valid(numbers + i * REGION_NUMBERS))
			return false;
	return true;
}

/* Returns true if the shape, with `margin` pixels around it, meets the rectangle. */
static bool meets(const double *shape, double margin, double x, double y, double width,
                  double height)
{
	return shape[REGION_X] - margin < x + width &&
	       shape[REGION_X] + shape[REGION_WIDTH] + margin > x &&
	       shape[REGION_Y] - margin < y + height &&
	       shape[REGION_Y] + shape[REGION_HEIGHT] + margin > y;
}

enum error regions_check(const struct regions *regions, const double *numbers,
                         const struct image *image, struct problem *problem)
{
	for (uint32_t i = 0; i < regions->count; i++) {
		const double *shape = numbers + i * REGION_NUMBERS;
		char text[80];

		if (meets(shape, 0, 0, 0, image->width, image->height))
			continue;
		snprintf(text, sizeof text, "%s%g,%g,%g,%g", prefixes[(int)shape[REGION_KIND]],
		         shape[REGION_X], shape[REGION_Y], shape[REGION_WIDTH],
		         shape[REGION_HEIGHT]);
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "regions", text,
		                             "region %u lies outside the image (or roi), which is "
		                             "%ux%u; this one is counted from its corner",
		                             i + 1, image->width, image->height);
	}
	return ERR_OK;
}

/* Returns the distance of a pixel from an ellipse along the line to its centre, plus half a pixel,
 * as if it were measured from the last pixel within; 0 within. */
static double ellipse_distance(const double *shape, int x, int y)
{
	const int64_t w = (int64_t)shape[REGION_WIDTH], h = (int64_t)shape[REGION_HEIGHT];
	const int64_t dx = 2 * (x - (int64_t)shape[REGION_X]) + 1 - w;
	const int64_t dy = 2 * (y - (int64_t)shape[REGION_Y]) + 1 - h;
	const double ratio = hypot((double)dx / (double)w, (double)dy / (double)h);

	if (llabs(dx) <= w && llabs(dy) <= h && dx * dx * h * h + dy * dy * w * w <= w * w * h * h)
		return 0;
	return 0.5 + hypot((double)dx, (double)dy) / 2 * (1 - 1 / ratio);
}

double regions_weight(const struct regions *regions, const double *numbers, int x, int y)
{
	double most = 0;

	if (!regions->count)
		return 1;
	for (uint32_t i = 0; i < regions->count; i++) {
		const double *shape = numbers + i * REGION_NUMBERS;
		const double last_x = shape[REGION_X] + shape[REGION_WIDTH] - 1;
		const double last_y = shape[REGION_Y] + shape[REGION_HEIGHT] - 1;
		/* 0 within, 1 next to a rectangle */
		const double distance = shape[REGION_KIND] == REGION_ELLIPSE
		                            ? ellipse_distance(shape, x, y)
		                            : hypot(fmax(fmax(shape[REGION_X] - x, x - last_x), 0),
		                                    fmax(fmax(shape[REGION_Y] - y, y - last_y), 0));

		if (distance <= 0)
			most = 1;
		else if (regions->feather)
			most = fmax(most, 1 - distance / (regions->feather + 1));
	}
	return regions->invert ? 1 - most : most;
}

bool regions_touch(const struct regions *regions, const double *numbers, const struct area *area)
{
	bool touch = !regions->count || regions->invert;

	for (uint32_t i = 0; !touch && i < regions->count; i++)
		touch = meets(numbers + i * REGION_NUMBERS, regions->feather, area->x, area->y,
		              area->width, area->height);
	return touch;
}
