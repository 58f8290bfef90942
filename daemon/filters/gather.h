/* Filters that must know the whole image first. A run of the job gathers counts of the samples'
 * values, or edges, and the numbers made from them become part of the filter's call. Numbers made
 * from counts are shares of full scale. Counts are of results as stored: between filters on luma,
 * which the last run does not round, a luma may be half a count off. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/image.h"

enum gather {
	GATHER_NONE,
	GATHER_THRESHOLD, /* a threshold that separates two classes */
	GATHER_TABLE,     /* a table that equalizes */
	GATHER_EDGES,     /* the pixels that are edges: a plane of bits (edges.h), not numbers */
	GATHERS
};

enum {
	COUNTS_MAX = 65536,
	GATHER_ENTRIES_MAX = 1024,
	GATHER_NUMBERS_MAX = BANDS_MAX * GATHER_ENTRIES_MAX
};

/* Numbers for each band: those of a table are 256 for bytes, else GATHER_ENTRIES_MAX. */
uint32_t gather_entries(enum gather gather, enum pixel_type type);

/* Rows of numbers: one for each colour, or (luma) one. Alpha has none. */
uint32_t gather_rows(const struct image *image, bool luma);

/* The number of counts of a colour. The i-th of n counts values nearest to i / (n - 1) of full
 * scale. Values beyond either end count as the end, NaN does not count. */
uint32_t counts_of(enum pixel_type type);

/* Adds pixels like the image's: each colour to counts of its own, or the luma of BT.601. */
void counts_add(uint64_t *counts, const struct image *image, bool luma, const void *pixels,
                size_t number);

/* Returns a threshold between two of n counts (Otsu, "A Threshold Selection Method from Gray-Level
 * Histograms", 1979): the first of those that split the values into two classes whose means differ
 * most, weighted by their sizes. With a single value it is the first of all. */
double counts_threshold(const uint64_t *counts, uint32_t n);

/* Makes a table that equalizes: entry i is the share of values up to i / (entries - 1) of full
 * scale among those above the smallest; if only one value occurs, that share itself. entries: at
 * most n. */
void counts_table(const uint64_t *counts, uint32_t n, double *table, uint32_t entries);

/* Returns true if numbers from another process are valid. */
bool gather_valid(const double *numbers, size_t count);
