/* Few trials instead of all combinations: of several factors with some levels each, rows of levels
 * such that any two levels of any two factors meet in at least one row. Most faults need no more
 * than two circumstances to show, and the number of rows is near the product of the two largest
 * factors instead of the product of all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAIRWISE_FACTORS = 8, PAIRWISE_LEVELS = 128, PAIRWISE_ROWS = 1500 };

struct pairwise {
	size_t factors;
	unsigned levels[PAIRWISE_FACTORS]; /* levels of each factor */
	size_t rows;
	uint8_t row[PAIRWISE_ROWS][PAIRWISE_FACTORS]; /* the level of each factor */
};

/* Makes the rows, of two factors or more. The same seed makes the same rows. False
 * if there are too many. */
bool pairwise_init(struct pairwise *p, const unsigned *levels, size_t factors, uint64_t seed);
