/* A flood from every sure pixel, with a stack of its own. The stack is short, because a hostile
 * image could fill any: pixels that find no room in it are marked all the same, and their
 * neighbours are found in another pass over all rows, 64 pixels at a time. All passes but the last
 * have filled the stack. */
#include "filters/edges.h"

#include <stdlib.h>
#include <string.h>

struct point {
	uint32_t x, y;
};

enum { POINTS_MAX = 1 << 16, WORD = 64 };

static size_t row_words(uint32_t width)
{
	return ((size_t)width + WORD - 1) / WORD;
}

uint64_t edges_words(uint32_t width, uint32_t height)
{
	return (uint64_t)row_words(width) * height;
}

enum error edges_init(struct edges *e, uint32_t width, uint32_t height)
{
	const size_t words = (size_t)edges_words(width, height);

	*e = (struct edges){.width = width, .height = height, .words = row_words(width)};
	e->some = calloc(words, sizeof *e->some);
	e->sure = calloc(words, sizeof *e->sure);
	e->points = malloc(POINTS_MAX * sizeof *e->points);
	return e->some && e->sure && e->points ? ERR_OK : ERR_MEMORY;
}

void edges_fini(struct edges *e)
{
	free(e->some);
	free(e->sure);
	free(e->points);
	*e = (struct edges){0};
}

/* Sets a row of words from samples that lie `bands` apart. */
#define SET_ROW(type, low, high)                                                                   \
	for (uint32_t x = 0; x < e->width; x++) {                                                  \
		const type v = ((const type *)pixels)[band + x * bands];                           \
                                                                                                   \
		some |= (uint64_t)(v > (low)) << x % WORD;                                         \
		sure |= (uint64_t)(v > (high)) << x % WORD;                                        \
		if (x % WORD < WORD - 1 && x + 1 < e->width)                                       \
			continue;                                                                  \
		*some_words++ = some;                                                              \
		*sure_words++ = sure;                                                              \
		some = sure = 0;                                                                   \
	}

void edges_set_row(struct edges *e, uint32_t y, const struct image *image, uint32_t band,
                   const void *pixels)
{
	const size_t bands = image->bands;
	uint64_t *some_words = e->some + y * e->words, *sure_words = e->sure + y * e->words;
	uint64_t some = 0, sure = 0;

	switch ((enum pixel_type)image->type) {
	case PIXEL_U8:
		SET_ROW(uint8_t, 63, 191)
		break;
	case PIXEL_U16:
		SET_ROW(uint16_t, 16383, 49151)
		break;
	case PIXEL_F32:
		SET_ROW(float, 0.25f, 0.75f)
		break;
	case PIXEL_TYPES:
		break;
	}
}

/* Makes a pixel sure if it may be an edge and is not yet sure. */
static bool mark_sure(struct edges *e, uint32_t x, uint32_t y)
{
	const size_t word = y * e->words + x / WORD;
	const uint64_t bit = UINT64_C(1) << x % WORD;

	if (!(e->some[word] & ~e->sure[word] & bit))
		return false;
	e->sure[word] |= bit;
	return true;
}

/* Follows the edge from a pixel just made sure. Returns false if the stack was too short. */
static bool follow(struct edges *e, uint32_t x, uint32_t y)
{
	size_t count = 1;
	bool had_room = true;

	e->points[0] = (struct point){x, y};
	while (count) {
		const struct point p = e->points[--count];
		const uint32_t left = p.x ? p.x - 1 : 0, top = p.y ? p.y - 1 : 0;

		for (uint32_t j = top; j <= p.y + 1 && j < e->height; j++)
			for (uint32_t i = left; i <= p.x + 1 && i < e->width; i++) {
				if (!mark_sure(e, i, j))
					continue;
				if (count == POINTS_MAX)
					had_room = false;
				else
					e->points[count++] = (struct point){i, j};
			}
	}
	return had_room;
}

/* The sure pixels of a word of three rows. */
static uint64_t sure_around(const struct edges *e, uint32_t y, size_t word)
{
	const uint64_t *at = e->sure + y * e->words + word;

	return at[0] | (y ? *(at - e->words) : 0) | (y + 1 < e->height ? at[e->words] : 0);
}

/* Returns the pixels of a word that may be edges, are not sure, and touch a sure one. */
static uint64_t touched(const struct edges *e, uint32_t y, size_t word)
{
	const size_t at = y * e->words + word;
	uint64_t near;

	if (!(e->some[at] & ~e->sure[at]))
		return 0;
	near = sure_around(e, y, word);
	near |= near << 1 | near >> 1;
	if (word)
		near |= sure_around(e, y, word - 1) >> (WORD - 1);
	if (word + 1 < e->words)
		near |= sure_around(e, y, word + 1) << (WORD - 1);
	return near & e->some[at] & ~e->sure[at];
}

void edges_grow(struct edges *e)
{
	bool done;

	do {
		done = true;
		for (uint32_t y = 0; y < e->height; y++)
			for (size_t word = 0; word < e->words; word++)
				for (uint64_t bits; (bits = touched(e, y, word));) {
					const uint32_t x = (uint32_t)(word * WORD) +
					                   (uint32_t)__builtin_ctzll(bits);

					if (mark_sure(e, x, y) && !follow(e, x, y))
						done = false;
				}
	} while (!done);
}

bool edges_at(const double *plane, uint32_t width, uint32_t x, uint32_t y)
{
	uint64_t word;

	memcpy(&word, plane + (size_t)y * row_words(width) + x / WORD, sizeof word);
	return word >> x % WORD & 1;
}
