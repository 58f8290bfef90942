/* Filters that must know the whole image first. A run of the job gathers counts of the samples'
 * values, or edges, and the numbers made from them become part of the filter's call: shares of full
 * scale, or bits in their place. Counts are of results as stored: between filters on luma,
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
	GATHER_TILES,     /* tables of the tiles of a grid, as bits: CLAHE */
	GATHER_EDGES,     /* the pixels that are edges: a plane of bits (edges.h), not numbers */
	GATHERS
};

enum {
	COUNTS_MAX = 65536,
	GATHER_ENTRIES_MAX = 1024,
	GATHER_TILES_MAX = 32, /* across and down */
	GATHER_NUMBERS_MAX = BANDS_MAX * GATHER_ENTRIES_MAX,
	/* The most numbers that a call may know, of all pages: edges of 2^28 pixels. */
	GATHERED_MAX = 1 << 22
};
/* The most pixels whose values can be counted. */
#define PIXELS_COUNTED_MAX UINT32_MAX

/* The data that a call needs. */
struct gathering {
	uint32_t kind;  /* enum gather */
	uint32_t luma;  /* 1: of the luma of BT.601, not of each colour */
	uint32_t tiles; /* GATHER_TILES: across and down, from 1 on */
	uint32_t unused;
	double clip; /* GATHER_TILES: the limit of a count, in mean counts; 0: none */
};

/* True if what another process wants gathered can be. */
bool gathering_valid(const struct gathering *gathering);

/* Finds how many numbers, in rows of how many, are gathered from an image. Counts make a row for
 * each colour but alpha, or one (luma): a number, or tables. A table has 256 numbers for bytes,
 * else GATHER_ENTRIES_MAX; that of a tile has two bits for each count. Edges make a row of words
 * for each row of the image. */
void gather_size(const struct gathering *gathering, const struct image *image, uint32_t *width,
                 uint32_t *height);

/* The number of counts of a colour. The i-th of n counts values nearest to i / (n - 1) of full
 * scale. Values beyond either end count as the end, NaN does not count. */
uint32_t counts_of(enum pixel_type type);

/* Adds pixels like the image's, PIXELS_COUNTED_MAX in all at most: each colour to counts of its
 * own, or the luma of BT.601. */
void counts_add(uint32_t *counts, const struct image *image, bool luma, const void *pixels,
                size_t number);

/* Returns a threshold between two of n counts (Otsu, "A Threshold Selection Method from Gray-Level
 * Histograms", 1979): the first of those that split the values into two classes whose means differ
 * most, weighted by their sizes. With a single value it is the first of all. */
double counts_threshold(const uint32_t *counts, uint32_t n);

/* Makes a table that equalizes: entry i is the share of values up to i / (entries - 1) of full
 * scale among those above the smallest; if only one value occurs, that share itself. entries: at
 * most n. */
void counts_table(const uint32_t *counts, uint32_t n, double *table, uint32_t entries);

/* Makes a tile's table, an entry for each of n counts: the share of values up to there, from 0 to
 * n - 1. Limits the counts first: what exceeds a limit is spread evenly over all (Zuiderveld,
 * "Contrast Limited Adaptive Histogram Equalization", 1994). The limit, the rest of the division
 * and the rounding are as in OpenCV. Entries never fall, so the table is 2 n bits: for entry i, bit
 * i + entry is 1. Changes the counts. */
void counts_clahe(uint32_t *counts, uint32_t n, double clip, uint64_t *bits);

/* Words of a table's bits. */
uint32_t clahe_words(uint32_t n);

/* Reads the table in these words, which may have any bits. */
void clahe_table(const double *words, uint32_t n, uint16_t *table);

/* Returns true if numbers from another process are valid. Any bits can be edges or tables. */
bool gather_valid(enum gather gather, const double *numbers, size_t count);
