/* Each filter leaves the difference to what it expects of a byte, from those to the left, above,
 * and above to the left, which are 0 outside the image. Nothing depends on what another byte has
 * become, so that all loops are vectors. */
#include "codec/png_filter.h"

#include <stdlib.h>
#include <string.h>

#include "common/vectorised.h"

enum { SUB = 1, UP, AVERAGE, PAETH, FILTERS };

/* In 16 bits, of which a vector holds twice as many as of 32. */
static inline __attribute__((always_inline)) uint8_t nearest(int16_t left, int16_t above,
                                                             int16_t corner)
{
	int16_t across = (int16_t)(above - corner), down = (int16_t)(left - corner),
	        both = (int16_t)(across + down);
	int16_t near;

	across = (int16_t)(across < 0 ? -across : across);
	down = (int16_t)(down < 0 ? -down : down);
	both = (int16_t)(both < 0 ? -both : both);
	near = down <= both ? above : corner;
	return (uint8_t)((across <= down && across <= both) ? left : near);
}

/* `left` and `corner` lie a pixel before `row` and `above`. */
VECTORISED static void filter_bytes(uint8_t *restrict to, const uint8_t *row, const uint8_t *above,
                                    const uint8_t *left, const uint8_t *corner, size_t size,
                                    int filter)
{
	if (filter == SUB)
		for (size_t i = 0; i < size; i++)
			to[i] = (uint8_t)(row[i] - left[i]);
	else if (filter == UP)
		for (size_t i = 0; i < size; i++)
			to[i] = (uint8_t)(row[i] - above[i]);
	else if (filter == AVERAGE)
		for (size_t i = 0; i < size; i++)
			to[i] = (uint8_t)(row[i] - (left[i] + above[i]) / 2);
	else
		for (size_t i = 0; i < size; i++)
			to[i] = (uint8_t)(row[i] - nearest(left[i], above[i], corner[i]));
}

VECTORISED static uint64_t sum_of(const uint8_t *bytes, size_t size)
{
	uint64_t sum = 0;

	while (size) {
		size_t some = size < 1 << 20 ? size : 1 << 20;
		uint32_t part = 0;

		for (size_t i = 0; i < some; i++)
			part += (uint32_t)abs((int8_t)bytes[i]);
		sum += part;
		bytes += some;
		size -= some;
	}
	return sum;
}

void png_filter_row(uint8_t *to, const uint8_t *row, const uint8_t *above, size_t size,
                    size_t pixel, uint8_t *trial)
{
	static const uint8_t outside[8] = {0};
	uint64_t least = sum_of(row, size);

	*to = 0;
	memcpy(to + 1, row, size);
	for (int filter = SUB; filter < FILTERS; filter++) {
		uint64_t sum;

		filter_bytes(trial, row, above, outside, outside, pixel, filter);
		filter_bytes(trial + pixel, row + pixel, above + pixel, row, above, size - pixel,
		             filter);
		sum = sum_of(trial, size);
		if (sum >= least)
			continue;
		least = sum;
		*to = (uint8_t)filter;
		memcpy(to + 1, trial, size);
	}
}
