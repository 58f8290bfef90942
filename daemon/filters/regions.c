/* A shape consists of the pixels whose centres lie in it, by integers, so that devices agree. */
#include "filters/regions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "filters/filters.h"

/* Squares of an ellipse's sides, multiplied, fit 64 bits. */
enum { ELLIPSE_SIDE_MAX = 32768 };

/* The largest magnitude of x and y after they have been moved by those of a ROI. */
enum { PLACE_MAX = 1 << 24 };

static const char *const prefixes[REGION_KINDS] = {
    [REGION_RECTANGLE] = "",
    [REGION_ELLIPSE] = "ellipse:",
    [REGION_POLYGON] = "polygon:",
    [REGION_NONZERO] = "polygon-nonzero:",
};

size_t regions_numbers(const struct regions *regions)
{
	return (size_t)regions->count * REGION_NUMBERS + 2 * (size_t)regions->corners;
}

static bool is_polygon(const double *shape)
{
	return shape[REGION_KIND] >= REGION_POLYGON;
}

static bool in_range(double value, double min, double max)
{
	return value >= min && value <= max && value == floor(value);
}

/* Checks a shape; corners: so many may be its own. */
static bool shape_valid(const double *shape, double corners)
{
	const bool ellipse = shape[REGION_KIND] == REGION_ELLIPSE, polygon = is_polygon(shape);
	const double side = ellipse ? ELLIPSE_SIDE_MAX : 2.0 * IMAGE_SIDE_MAX;

	return in_range(shape[REGION_KIND], 0, REGION_KINDS - 1) &&
	       in_range(shape[REGION_X], -PLACE_MAX, PLACE_MAX) &&
	       in_range(shape[REGION_Y], -PLACE_MAX, PLACE_MAX) &&
	       in_range(shape[REGION_WIDTH], 1, side) && in_range(shape[REGION_HEIGHT], 1, side) &&
	       in_range(shape[REGION_CORNERS], polygon ? REGION_CORNERS_MIN : 0,
	                polygon ? REGION_CORNERS_MAX : 0) &&
	       in_range(shape[REGION_FIRST], 0, corners - shape[REGION_CORNERS]);
}

/* Reads whole numbers up to ';' or the end, and advances to there. marks: those that must follow
 * numbers, in turn. Returns the count; 0 if the text differs or there are more than `room`. */
static size_t parse_numbers(const char **text, const char *marks, double *to, size_t room)
{
	for (size_t count = 0; count < room; ++*text) {
		const char *digit = *text + (**text == '-');
		char *end;

		if (*digit < '0' || *digit > '9')
			return 0;
		to[count] = (double)strtol(*text, &end, 10);
		if (fabs(to[count]) > IMAGE_SIDE_MAX)
			return 0;
		*text = end;
		if (!*end || *end == ';')
			return count + 1;
		if (*end != marks[count++ % 2])
			return 0;
	}
	return 0;
}

/* Sets the rectangle around a polygon's corners. Returns false if they are all on a line, so that
 * their triangles have no area. */
static bool enclose(double *shape, const double *corner)
{
	double right = *corner, bottom = corner[1], area = 0;

	shape[REGION_X] = right;
	shape[REGION_Y] = bottom;
	for (int i = 1; i < (int)shape[REGION_CORNERS]; i++) {
		const double *at = corner + 2 * i;

		shape[REGION_X] = fmin(shape[REGION_X], at[0]);
		shape[REGION_Y] = fmin(shape[REGION_Y], at[1]);
		right = fmax(right, at[0]);
		bottom = fmax(bottom, at[1]);
		area += fabs((at[-2] - corner[0]) * (at[1] - corner[1]) -
		             (at[-1] - corner[1]) * (at[0] - corner[0]));
	}
	shape[REGION_WIDTH] = right - shape[REGION_X];
	shape[REGION_HEIGHT] = bottom - shape[REGION_Y];
	return area > 0;
}

/* Reads one shape, up to ';' or the end, and advances to there. room: of numbers at `corner`. */
static bool parse_shape(const char **text, double *shape, double *corner, size_t room)
{
	enum region_kind kind = REGION_KINDS - 1;
	size_t count;

	while (strncmp(*text, prefixes[kind], strlen(prefixes[kind])))
		kind--; /* the first has no prefix */
	*text += strlen(prefixes[kind]);
	shape[REGION_KIND] = kind;
	shape[REGION_CORNERS] = 0;
	if (!is_polygon(shape))
		return parse_numbers(text, ",,", shape + REGION_X, 4) == 4 &&
		       shape_valid(shape, shape[REGION_FIRST]);
	count = parse_numbers(text, ", ", corner, MIN(room, 2 * REGION_CORNERS_MAX));
	shape[REGION_CORNERS] = (double)count / 2;
	return count >= 2 * REGION_CORNERS_MIN && count % 2 == 0 && enclose(shape, corner);
}

enum error regions_parse(const char *text, double *numbers, size_t room, struct regions *regions,
                         struct problem *problem)
{
	const char *at = text;

	regions->count = 1;
	regions->corners = 0;
	for (const char *next = text; (next = strchr(next, ';')); next++)
		regions->count++;
	if (regions->count > REGIONS_MAX || regions_numbers(regions) > room)
		return filter_refuse(problem, "regions", text, "expected at most %d", REGIONS_MAX);
	room = MIN(room, regions->count * REGION_NUMBERS + 2 * REGIONS_CORNERS_MAX);
	for (uint32_t i = 0; i < regions->count; i++, at++) {
		const size_t used = regions_numbers(regions);
		double *shape = numbers + (size_t)i * REGION_NUMBERS;

		shape[REGION_FIRST] = regions->corners;
		if (parse_shape(&at, shape, numbers + used, room - used)) {
			regions->corners += (uint32_t)shape[REGION_CORNERS];
			continue;
		}
		return filter_refuse(
		    problem, "regions", text,
		    "expected x,y,width,height, ellipse:x,y,width,height or polygon:x,y x,y x,y… "
		    "in whole pixels, separated by ';', with sides of at least 1 (of an ellipse at "
		    "most %d) or %d to %d corners (%d in all) that are not all on a line, as in "
		    "40,30,80,100;ellipse:10,10,64,64;polygon:9,9 90,20 40,80; number %u differs",
		    ELLIPSE_SIDE_MAX, REGION_CORNERS_MIN, REGION_CORNERS_MAX, REGIONS_CORNERS_MAX,
		    i + 1);
	}
	return ERR_OK;
}

void regions_move(const struct regions *regions, double *numbers, int x, int y)
{
	for (uint32_t i = 0; i < regions->count; i++, numbers += REGION_NUMBERS) {
		numbers[REGION_X] += x;
		numbers[REGION_Y] += y;
	}
	for (uint32_t i = 0; i < regions->corners; i++, numbers += 2) {
		numbers[0] += x;
		numbers[1] += y;
	}
}

bool regions_valid(const struct regions *regions, const double *numbers)
{
	if (regions->count > REGIONS_MAX || regions->corners > REGIONS_CORNERS_MAX ||
	    regions->invert > 1 || regions->feather > REGIONS_FEATHER_MAX)
		return false;
	for (uint32_t i = 0; i < regions->count; i++, numbers += REGION_NUMBERS)
		if (!shape_valid(numbers, regions->corners))
			return false;
	for (uint32_t i = 0; i < 2 * regions->corners; i++)
		if (!in_range(numbers[i], -PLACE_MAX, PLACE_MAX))
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
		snprintf(text, sizeof text, "%s%s%g,%g,%g,%g", prefixes[(int)shape[REGION_KIND]],
		         is_polygon(shape) ? "in " : "", shape[REGION_X], shape[REGION_Y],
		         shape[REGION_WIDTH], shape[REGION_HEIGHT]);
		return bad_parameter(problem, "regions", text,
		                     "region %u lies outside the image (or roi), which is %ux%u; "
		                     "this one is counted from its corner",
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

/* Returns the distance of a pixel's centre from a polygon's nearest edge, plus half a pixel; 0
 * within. A centre on an edge is right of it. corners: those of all polygons. */
static double polygon_distance(const double *shape, const double *corners, int x, int y)
{
	const double *corner = corners + 2 * (size_t)shape[REGION_FIRST];
	const size_t count = (size_t)shape[REGION_CORNERS];
	double nearest = INFINITY;
	int turns = 0;

	for (size_t i = 0; i < count; i++) {
		const double *a = corner + 2 * i, *b = corner + 2 * ((i + 1) % count);
		/* from the centre, doubled to be whole: odd, so none is as high as the centre */
		const int64_t ax = 2 * ((int64_t)a[0] - x) - 1, ay = 2 * ((int64_t)a[1] - y) - 1;
		const int64_t bx = 2 * ((int64_t)b[0] - x) - 1, by = 2 * ((int64_t)b[1] - y) - 1;
		const int64_t across = ax * by - ay * bx, dx = bx - ax, dy = by - ay;
		const int64_t length = dx * dx + dy * dy, along = -ax * dx - ay * dy;

		turns += (ay < 0 && by > 0 && across <= 0) - (ay > 0 && by < 0 && across >= 0);
		if (along <= 0)
			nearest = fmin(nearest, (double)(ax * ax + ay * ay));
		else if (along < length)
			nearest = fmin(nearest, (double)across * (double)across / (double)length);
	}
	if (shape[REGION_KIND] == REGION_POLYGON ? turns % 2 : turns)
		return 0;
	return 0.5 + sqrt(nearest) / 2;
}

double regions_weight(const struct regions *regions, const double *numbers, int x, int y)
{
	const double *corners = numbers + (size_t)regions->count * REGION_NUMBERS;
	double most = 0;

	if (!regions->count)
		return 1;
	for (uint32_t i = 0; i < regions->count && most < 1; i++) {
		const double *shape = numbers + i * REGION_NUMBERS;
		const double last_x = shape[REGION_X] + shape[REGION_WIDTH] - 1;
		const double last_y = shape[REGION_Y] + shape[REGION_HEIGHT] - 1;
		const double dx = fmax(fmax(shape[REGION_X] - x, x - last_x), 0);
		const double dy = fmax(fmax(shape[REGION_Y] - y, y - last_y), 0);
		double distance; /* 0 within, 1 next to a rectangle */

		if (fmax(dx, dy) > regions->feather)
			continue;
		distance = is_polygon(shape) ? polygon_distance(shape, corners, x, y)
		           : shape[REGION_KIND] == REGION_ELLIPSE ? ellipse_distance(shape, x, y)
		                                                  : hypot(dx, dy);
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
