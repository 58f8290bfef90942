/* Hysteresis where more pixels wait than are remembered at a time; tests/http/test_canny.py has it
 * against scipy's. */
#include <string.h>

#include "filters/edges.h"
#include "unit.h"

enum { SIDE = 1400 };

static uint8_t pixels[SIDE * SIDE]; /* 128: perhaps an edge; 255: surely */

static size_t count_sure(void)
{
	const struct image image = {SIDE, SIDE, 1, PIXEL_U8, 0, {0}};
	struct edges e;
	size_t count = 0;

	assert_int_equal(edges_init(&e, SIDE, SIDE), ERR_OK);
	for (uint32_t y = 0; y < SIDE; y++)
		edges_set_row(&e, y, &image, 0, pixels + (size_t)y * SIDE);
	edges_grow(&e);
	for (size_t i = 0; i < e.words * e.height; i++)
		count += (size_t)__builtin_popcountll(e.sure[i]);
	edges_fini(&e);
	return count;
}

TEST(test_area)
{
	memset(pixels, 128, sizeof pixels);
	assert_int_equal(count_sure(), 0);
	pixels[SIDE * SIDE / 2 + 77] = 255;
	assert_int_equal(count_sure(), SIDE * SIDE);
}
