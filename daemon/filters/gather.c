#include "filters/gather.h"

#include <endian.h>
#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "base/vectorised.h"
#include "filters/edges.h"

uint32_t counts_of(enum pixel_type type)
{
	return type == PIXEL_U8 ? 256 : COUNTS_MAX;
}

/* Counts the colours, each of which has a row of numbers. */
static uint32_t colours_of(const struct image *image, bool luma)
{
	return luma ? 1 : image->bands - image->alpha;
}

bool gathering_valid(const struct gathering *g)
{
	return g->kind < GATHERS && g->tiles <= GATHER_TILES_MAX && g->clip >= 0 &&
	       g->clip <= COUNTS_MAX && (g->tiles || g->kind != GATHER_TILES);
}

void gather_size(const struct gathering *gathering, const struct image *image, uint32_t *width,
                 uint32_t *height)
{
	const uint32_t counts = counts_of(image->type), tiles = gathering->tiles;
	const uint32_t widths[GATHERS] = {
	    [GATHER_THRESHOLD] = 1,
	    [GATHER_TABLE] = MIN(counts, GATHER_ENTRIES_MAX),
	    [GATHER_TILES] = tiles * tiles * clahe_words(counts),
	    [GATHER_EDGES] = (uint32_t)edges_words(image->width, 1),
	};

	*width = widths[gathering->kind];
	*height =
	    gathering->kind == GATHER_EDGES ? image->height : colours_of(image, gathering->luma);
}

static void count(uint32_t *counts, double share, uint32_t n)
{
	if (!isnan(share))
		counts[(size_t)rint(fmin(fmax(share, 0), 1) * (n - 1))]++;
}

/* One colour; its first sample is at `band`. */
static void add_colour(uint32_t *counts, const struct image *image, uint32_t band,
                       const void *pixels, size_t number)
{
	const size_t end = number * image->bands;
	const uint8_t *bytes = pixels;
	const uint16_t *words = pixels;
	const float *floats = pixels;

	switch ((enum pixel_type)image->type) {
	case PIXEL_U8:
		for (size_t i = band; i < end; i += image->bands)
			counts[bytes[i]]++;
		break;
	case PIXEL_U16:
		for (size_t i = band; i < end; i += image->bands)
			counts[words[i]]++;
		break;
	case PIXEL_F32:
		for (size_t i = band; i < end; i += image->bands)
			count(counts, (double)floats[i], COUNTS_MAX);
		break;
	case PIXEL_TYPES:
		break;
	}
}

void counts_add(uint32_t *counts, const struct image *image, bool luma, const void *pixels,
                size_t number)
{
	const double full = pixel_type_rows[image->type].full_scale;
	const uint32_t n = counts_of(image->type);

	for (uint32_t b = 0; !luma && b < colours_of(image, false); b++)
		add_colour(counts + (size_t)b * n, image, b, pixels, number);
	for (size_t i = 0; luma && i < number; i++) {
		const size_t at = i * image->bands;

		count(counts,
		      (0.299 * image_get_sample(pixels, at, image->type) +
		       0.587 * image_get_sample(pixels, at + 1, image->type) +
		       0.114 * image_get_sample(pixels, at + 2, image->type)) /
		          full,
		      n);
	}
}

double counts_threshold(const uint32_t *counts, uint32_t n)
{
	double total = 0, sum = 0, below = 0, part = 0, most = 0;
	uint32_t best = 0;

	for (uint32_t i = 0; i < n; i++) {
		total += (double)counts[i];
		sum += (double)counts[i] * i;
	}
	for (uint32_t i = 0; i < n && below < total; i++) {
		double above, apart, variance;

		below += (double)counts[i];
		part += (double)counts[i] * i;
		above = total - below;
		if (below <= 0 || above <= 0)
			continue;
		apart = part / below - (sum - part) / above;
		variance = below / total * (above / total) * apart * apart;
		if (variance > most) {
			most = variance;
			best = i;
		}
	}
	return (best + 0.5) / (n - 1);
}

void counts_table(const uint32_t *counts, uint32_t n, double *table, uint32_t entries)
{
	double smallest = 0, sum = 0;
	uint32_t next = 0;

	for (uint32_t i = 0; i < entries; i++) {
		/* Returns the last count whose value is nearer to this entry's than to the next
		 * one's. */
		const double middle = floor((i + 0.5) * (n - 1) / (entries - 1));
		const uint32_t last = (uint32_t)fmin(middle, n - 1);

		for (; next <= last; next++)
			sum += (double)counts[next];
		if (smallest <= 0)
			smallest = sum;
		table[i] = sum;
	}
	for (uint32_t i = 0; i < entries; i++)
		table[i] = sum > smallest ? fmax(0, table[i] - smallest) / (sum - smallest)
		                          : (double)i / (entries - 1);
}

/* Bytes of 1 mark the bits first: these do not depend on each other as those of a word do. */
VECTORISED void counts_clahe(uint32_t *counts, uint32_t n, double clip, uint64_t *bits)
{
	uint32_t total = 0, kept = 0, sum = 0, limit, each, rest;
	uint8_t marks[2 * COUNTS_MAX];
	float scale;

	for (uint32_t i = 0; i < n; i++)
		total += counts[i];
	scale = (float)(n - 1) / (float)MAX(total, 1);
	limit = clip > 0 ? MAX((uint32_t)fmin(clip * total / n, total), 1) : total;
	for (uint32_t i = 0; i < n; i++)
		kept += counts[i] = MIN(counts[i], limit);
	each = (total - kept) / n;
	rest = (total - kept) % n;
	for (uint32_t i = 0, step = n / MAX(rest, 1); rest; i += step, rest--)
		counts[i]++;
	for (uint32_t i = 0; i < n; i++)
		counts[i] = sum += counts[i] + each;
	for (uint32_t i = 0; i < n; i++)
		counts[i] = i + (uint32_t)(int32_t)rintf((float)counts[i] * scale);
	memset(marks, 0, (size_t)2 * n);
	for (uint32_t i = 0; i < n; i++)
		marks[counts[i]] = 1;
	for (uint32_t i = 0; i < clahe_words(n); i++) {
		bits[i] = 0;
		for (uint32_t j = 0; j < 8; j++) {
			uint64_t eight;

			memcpy(&eight, marks + 64 * i + 8 * j, sizeof eight);
			bits[i] |= le64toh(eight) * 0x0102040810204080 >> 56 << 8 * j;
		}
	}
}

uint32_t clahe_words(uint32_t n)
{
	return 2 * n / 64;
}

void clahe_table(const double *words, uint32_t n, uint16_t *table)
{
	uint32_t i = 0;

	for (uint32_t k = 0; k < clahe_words(n); k++) {
		uint64_t word;

		memcpy(&word, words + k, sizeof word);
		for (; word && i < n; word &= word - 1, i++)
			table[i] =
			    (uint16_t)MIN(64 * k + (uint32_t)__builtin_ctzll(word) - i, n - 1);
	}
	while (i < n)
		table[i++] = (uint16_t)(n - 1);
}

bool gather_valid(enum gather gather, const double *numbers, size_t count)
{
	for (size_t i = 0; i < count && gather != GATHER_EDGES && gather != GATHER_TILES; i++)
		if (!(numbers[i] >= 0 && numbers[i] <= 1))
			return false;
	return true;
}
