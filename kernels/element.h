/* element.h: the one definition of a window that is not a rectangle of weights, for C and OpenCL C
 * alike. */
#ifndef ELEMENT_H
#define ELEMENT_H

/* Numbered as enum element in daemon/filters/operations.h. */
enum { ELEMENT_IS_RECTANGLE, ELEMENT_IS_ELLIPSE, ELEMENT_IS_CROSS, ELEMENT_IS_CIRCLE };

/* Returns the reach, to either side, of the row `j` rows from the centre of a window of this
 * radius. A circle has the places (i, j) with i² + j² <= radius². An ellipse has rows of
 * round(sqrt(radius² - j²)), as OpenCV's MORPH_ELLIPSE of an odd square: n is that if n (n - 1) <
 * radius² - j². */
static inline int element_half_width(int j, int radius, int element)
{
	const int squared = radius * radius - j * j;
	int side = 0;

	if (element == ELEMENT_IS_RECTANGLE)
		return radius;
	if (element == ELEMENT_IS_CROSS)
		return j == 0 ? radius : 0;
	if (element == ELEMENT_IS_CIRCLE)
		while ((side + 1) * (side + 1) <= squared)
			side++;
	else
		while (side * (side + 1) < squared)
			side++;
	return side;
}

#endif
