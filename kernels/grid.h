/* grid.h: the one definition of the grid of tiles that CLAHE lays on an image, for C and OpenCL C
 * alike. */
#ifndef GRID_H
#define GRID_H

/* Returns a tile's width, of an image `length` wide and `other` high, or its height. If the tiles
 * do not divide both sides, the image is first extended, right and below, to whole tiles: by a row
 * of tiles' worth of pixels even in a direction in which they would, as OpenCV does. */
static inline int grid_tile(int tiles, int length, int other)
{
	return length / tiles + (length % tiles != 0 || other % tiles != 0);
}

/* The two tiles, across or down, whose centres lie around a pixel, and its place between them: 0 at
 * the first, 2 tile at the second. At the ends of the image both are the same. */
struct grid_place {
	int first, second, part;
};

/* x: at least 0, below 2^30. */
static inline struct grid_place grid_place(int tiles, int tile, int x)
{
	const int at = 2 * x - tile, before = at < 0 ? -1 : at / (2 * tile);
	struct grid_place place;

	place.first = before < 0 ? 0 : before < tiles ? before : tiles - 1;
	place.second = before + 1 < tiles ? before + 1 : tiles - 1;
	place.part = at - before * 2 * tile;
	return place;
}

#endif
