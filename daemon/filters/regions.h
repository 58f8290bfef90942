/* Regions: the parts of an image inside or outside of which a chain's result is written. Their
 * shapes are numbers that the chain holds, in pixels of the filtered image: REGION_NUMBERS for
 * each, and behind those of all shapes x and y of the polygons' corners. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "image/image.h"

/* A polygon's rectangle is around its corners; FIRST is its first among those of all polygons. */
enum region_number {
	REGION_KIND,
	REGION_X,
	REGION_Y,
	REGION_WIDTH,
	REGION_HEIGHT,
	REGION_FIRST,
	REGION_CORNERS,
	REGION_NUMBERS
};

/* A pixel is in a polygon if the edges wind around it an odd number of times; by the other rule any
 * number of times but 0. */
enum region_kind { REGION_RECTANGLE, REGION_ELLIPSE, REGION_POLYGON, REGION_NONZERO, REGION_KINDS };

enum {
	REGIONS_MAX = 256,
	REGIONS_FEATHER_MAX = 1000,
	REGION_CORNERS_MIN = 3,
	REGION_CORNERS_MAX = 64,
	REGIONS_CORNERS_MAX = 1024, /* all polygons together */
	REGIONS_NUMBERS_MAX = REGIONS_MAX * REGION_NUMBERS + 2 * REGIONS_CORNERS_MAX
};

struct regions {
	uint32_t count;   /* 0: the result is written everywhere */
	uint32_t corners; /* all polygons together */
	uint32_t first;   /* index of the first number among the chain's coefficients */
	uint32_t invert;  /* 1: the result is written everywhere else */
	uint32_t feather; /* pixels */
};

/* Returns the count of the shapes' numbers. */
size_t regions_numbers(const struct regions *regions);

/* Reads "x,y,width,height;ellipse:x,y,width,height;polygon:x,y x,y x,y;…" into `numbers`, which has
 * space for `room`; x and y may be negative. Sets the counts of shapes and corners.
 * ERR_BAD_PARAMETER says what is expected. */
enum error regions_parse(const char *text, double *numbers, size_t room, struct regions *regions,
                         struct problem *problem) MUST_CHECK;

/* Moves the shapes by so many pixels. */
void regions_move(const struct regions *regions, double *numbers, int x, int y);

/* True if regions from another process, with all their numbers, are within all limits. */
bool regions_valid(const struct regions *regions, const double *numbers);

/* Checks shapes against an image: ERR_BAD_PARAMETER if one is wholly outside and does nothing. */
enum error regions_check(const struct regions *regions, const double *numbers,
                         const struct image *image, struct problem *problem) MUST_CHECK;

/* Returns the share of the result in pixel (x, y), from 0 (the original) to 1. It is 1 in a shape;
 * over `feather` pixels around it it falls with the distance from a rectangle or a polygon, or from
 * an ellipse along the line to its centre; the largest of all shapes counts; with `invert` it is 1
 * minus this. Without regions 1. */
double regions_weight(const struct regions *regions, const double *numbers, int x, int y);

/* Returns false if all pixels of the area are the original's. */
bool regions_touch(const struct regions *regions, const double *numbers, const struct area *area);
