/* Hysteresis against a flood that looks at all pixels again and again, and where edges wind through
 * all of an image. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "filters/edges.h"

enum { SIDE_MAX = 1400 };

/* 0, 128, 255: none, perhaps, sure. */
static uint8_t pixels[SIDE_MAX * SIDE_MAX];
static uint64_t seed = 7;

static uint32_t random_below(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % n);
}

static bool bit_at(const struct edges *e, const uint64_t *plane, uint32_t x, uint32_t y)
{
	return plane[y * e->words + x / 64] >> x % 64 & 1;
}

/* Finds the edges of the first width x height pixels; the caller frees them. */
static struct edges edges_of(uint32_t width, uint32_t height)
{
	const struct image image = {width, height, 1, PIXEL_U8, 0};
	struct edges e;

	assert_int_equal(edges_init(&e, width, height), ERR_OK);
	for (uint32_t y = 0; y < height; y++)
		edges_set_row(&e, y, &image, 0, pixels + (size_t)y * width);
	edges_grow(&e);
	return e;
}

static bool touches_sure(uint32_t width, uint32_t height, uint32_t x, uint32_t y)
{
	for (uint32_t j = y ? y - 1 : 0; j <= y + 1 && j < height; j++)
		for (uint32_t i = x ? x - 1 : 0; i <= x + 1 && i < width; i++)
			if (pixels[j * width + i] == 255)
				return true;
	return false;
}

/* The same in the pixels themselves. */
static void grow_slowly(uint32_t width, uint32_t height)
{
	for (bool again = true; again;) {
		again = false;
		for (uint32_t i = 0; i < width * height; i++)
			if (pixels[i] == 128 && touches_sure(width, height, i % width, i / width)) {
				pixels[i] = 255;
				again = true;
			}
	}
}

static void check_random(uint32_t width, uint32_t height, uint32_t some, uint32_t sure)
{
	struct edges e;

	for (uint32_t i = 0; i < width * height; i++)
		pixels[i] = random_below(1000) < sure ? 255 : random_below(1000) < some ? 128 : 0;
	e = edges_of(width, height);
	grow_slowly(width, height);
	for (uint32_t y = 0; y < height; y++) {
		for (uint32_t x = 0; x < width; x++)
			assert_int_equal(bit_at(&e, e.sure, x, y), pixels[y * width + x] == 255);
		if (width % 64)
			assert_int_equal(e.sure[(y + 1) * e.words - 1] >> width % 64, 0);
	}
	edges_fini(&e);
}

static void test_random(void **state)
{
	static const uint32_t sides[] = {1, 2, 63, 64, 65, 130};

	(void)state;
	for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
		for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) {
			check_random(sides[i], sides[k], 400, 5);
			check_random(sides[i], sides[k], 950, 2);
		}
}

/* Draws a line one pixel wide from a corner to the middle, with one pixel between its turns. */
static size_t draw_spiral(uint32_t side)
{
	int x = 0, y = 0, dx = 1, dy = 0;
	uint32_t length = side - 1;
	size_t count = 1;

	memset(pixels, 0, (size_t)side * side);
	pixels[0] = 128;
	for (uint32_t turn = 0; length > 0 && length < side; turn++) {
		for (uint32_t i = 0; i < length; i++, count++)
			pixels[(size_t)(y += dy) * side + (size_t)(x += dx)] = 128;
		const int was = dx;

		dx = -dy;
		dy = was;
		if (turn >= 2 && turn % 2 == 0)
			length -= 2;
	}
	pixels[(size_t)y * side + (size_t)x] = 255;
	return count;
}

static size_t count_sure(const struct edges *e)
{
	size_t count = 0;

	for (size_t i = 0; i < e->words * e->height; i++)
		count += (size_t)__builtin_popcountll(e->sure[i]);
	return count;
}

/* All of it hangs on its last pixel; cut in the middle, only what is behind the cut does. */
static void test_spiral(void **state)
{
	const size_t length = draw_spiral(SIDE_MAX - 3);
	struct edges e = edges_of(SIDE_MAX - 3, SIDE_MAX - 3);

	(void)state;
	assert_int_equal(count_sure(&e), length);
	edges_fini(&e);
	draw_spiral(SIDE_MAX - 3);
	pixels[100] = 0;
	e = edges_of(SIDE_MAX - 3, SIDE_MAX - 3);
	assert_int_equal(count_sure(&e), length - 101);
	edges_fini(&e);
}

/* More neighbours than are remembered at a time. */
static void test_area(void **state)
{
	struct edges e;

	(void)state;
	memset(pixels, 128, sizeof pixels);
	e = edges_of(SIDE_MAX, SIDE_MAX);
	assert_int_equal(count_sure(&e), 0);
	edges_fini(&e);
	pixels[SIDE_MAX * SIDE_MAX / 2 + 77] = 255;
	e = edges_of(SIDE_MAX, SIDE_MAX);
	assert_int_equal(count_sure(&e), SIDE_MAX * SIDE_MAX);
	edges_fini(&e);
}

/* Samples have each type, and edges come from the band that is asked for. */
static void test_samples(void **state)
{
	const uint16_t shorts[] = {0, 9, 32768, 9, 65535, 9};
	const float floats[] = {NAN, 1, 0.5f, 1, 1, 1, -1, 1};
	const double words[] = {0, 0, 0};
	struct image image = {3, 1, 2, PIXEL_U16, 0};
	struct edges e;
	double plane[1];

	(void)state;
	assert_int_equal(edges_init(&e, 3, 1), ERR_OK);
	edges_set_row(&e, 0, &image, 0, shorts);
	assert_int_equal(e.some[0], 6);
	assert_int_equal(e.sure[0], 4);
	memcpy(plane, e.sure, sizeof plane);
	assert_true(edges_at(plane, 3, 2, 0) && !edges_at(plane, 3, 1, 0));
	edges_fini(&e);
	assert_int_equal(edges_init(&e, 4, 1), ERR_OK);
	image = (struct image){4, 1, 2, PIXEL_F32, 1};
	edges_set_row(&e, 0, &image, 0, floats);
	assert_int_equal(e.some[0], 6);
	assert_int_equal(e.sure[0], 4);
	edges_set_row(&e, 0, &image, 1, floats);
	assert_int_equal(e.sure[0], 15);
	edges_fini(&e);
	assert_false(edges_at(words, 130, 129, 0));
	assert_int_equal(edges_words(129, 5), 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_spiral),
	    cmocka_unit_test(test_area),
	    cmocka_unit_test(test_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
