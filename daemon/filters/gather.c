#include "filters/gather.h"

#include <math.h>

uint32_t gather_entries(enum gather gather, enum pixel_type type)
{
	if (gather == GATHER_TABLE)
		return type == PIXEL_U8 ? 256 : GATHER_ENTRIES_MAX;
	return gather == GATHER_THRESHOLD;
}

uint32_t gather_rows(const struct image *image, bool luma)
{
	return luma ? 1 : image->bands - image->alpha;
}

uint32_t counts_of(enum pixel_type type)
{
	return type == PIXEL_U8 ? 256 : COUNTS_MAX;
}

static void count(uint64_t *counts, double share, uint32_t n)
{
	if (!isnan(share))
		counts[(size_t)rint(fmin(fmax(share, 0), 1) * (n - 1))]++;
}

/* One colour; its first sample is at `band`. */
static void add_colour(uint64_t *counts, const struct image *image, uint32_t band,
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

void counts_add(uint64_t *counts, const struct image *image, bool luma, const void *pixels,
                size_t number)
{
	const double full = pixel_type_rows[image->type].full_scale;
	const uint32_t n = counts_of(image->type);

	for (uint32_t b = 0; !luma && b < gather_rows(image, false); b++)
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

double counts_threshold(const uint64_t *counts, uint32_t n)
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

void counts_table(const uint64_t *counts, uint32_t n, double *table, uint32_t entries)
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

bool gather_valid(const double *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!(numbers[i] >= 0 && numbers[i] <= 1))
			return false;
	return true;
}
