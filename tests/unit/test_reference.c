/* The reference, which tests/kernels holds against kernels and tests/http, window by window,
 * against the oracle: its doubts, its comparison and its predictions. */
#include <math.h>
#include <string.h>

#include "chains.h"
#include "reference/reference.h"

/* A decision about a sample that equals its limit is known; after another filter, which may be off
 * by 1, it is in doubt up to the sample that is as far from the limit. */
TEST(test_decisions)
{
	enum { SURE = 1, OPEN = 255 }; /* slack */
	static const struct {
		const char *filters;
		uint8_t row[3], rise; /* each of the 3 rows is higher by this */
		float slack;          /* in the middle */
	} rows[] = {
	    {"threshold=value=0.4", {102, 102, 102}, 0, SURE},
	    {"linear,threshold=value=0.4", {101, 101, 101}, 0, OPEN},
	    {"linear,threshold=value=0.4", {103, 103, 103}, 0, OPEN},
	    {"linear,threshold=value=0.4", {104, 104, 104}, 0, SURE},
	    {"threshold=method=mean:size=3:offset=-0.2", {0, 76, 0}, 0, SURE},
	    {"canny=sigma=0:low=0.8:high=0.8", {0, 0, 51}, 0, SURE},
	    {"canny=sigma=0:low=0.4:high=0.6", {0, 0, 51}, 0, SURE},
	    {"sobel=output=direction", {7, 7, 7}, 0, SURE},
	    /* It may be no slope at all, which lies in the middle of the circle. */
	    {"linear,sobel=output=direction", {0, 1, 2}, 1, 129},
	    /* Without a threshold nothing is flat: 1 of the sample and 2 of the difference. */
	    {"linear,unsharp", {0, 0, 0}, 0, 4},
	    {"linear,unsharp", {0, 1, 0}, 0, 4},
	    /* The four pixels that are as far away as the radius count: 2.1, and 1 to round. */
	    {"linear,bilateral=radius=1:sigma_space=1:sigma_range=0.05", {0, 10, 0}, 0, 3},
	};
	/* Bands are as steep as each other. */
	const struct image image = {3, 3, 3, PIXEL_U8, 0, {0}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chain *chain = chain_of(rows[i].filters);
		uint8_t pixels[27];
		struct reference r;

		/* A region that is everything changes nothing. */
		assert_int_equal(chain_set_regions(chain, "0,0,3,3", &problem), ERR_OK);
		for (size_t k = 0; k < sizeof pixels; k++)
			pixels[k] = (uint8_t)(rows[i].row[k / 3 % 3] + k / 9 * rows[i].rise);
		assert_int_equal(reference_filter(chain, &image, pixels, &r), ERR_OK);
		if (fabsf(r.slack[13] - rows[i].slack) > 0.01f)
			fail_msg("%s: %g", rows[i].filters, r.slack[13]);
		reference_fini(&r);
		free(chain);
	}
}

static double cost_of(const char *text, enum pixel_type type)
{
	const struct image image = {4096, 4096, 3, type, 0, {0}};
	struct chain *chain = chain_of(text);
	const double cost = reference_cost_in_pieces(chain, &image);

	free(chain);
	return cost / 4096 / 4096 / 3;
}

/* Predictions tell apart what takes apart times; bench_reference measures how well. */
TEST(test_cost)
{
	static const struct {
		const char *filter, *other;
		double least, most; /* the filter's cost in costs of the other */
	} rows[] = {
	    {"prewitt=output=direction", "prewitt", 3, INFINITY}, /* an arc tangent */
	    {"sobel=output=direction", "scharr", 3, INFINITY},
	    {"threshold=method=mean", "threshold", 2, INFINITY}, /* a blur and a comparison */
	    {"threshold=method=gaussian:size=9", "threshold=method=otsu", 2, INFINITY},
	    {"median=radius=15", "median", 2, 8}, /* a histogram follows the window */
	    {"median,median", "median", 2, INFINITY},
	};

	for (enum pixel_type type = PIXEL_U8; type < PIXEL_TYPES; type++) {
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			double ratio = cost_of(rows[i].filter, type) / cost_of(rows[i].other, type);

			if (ratio <= rows[i].least || ratio >= rows[i].most)
				fail_msg("%s: %g", rows[i].filter, ratio);
		}
		for (uint32_t f = 0; f < FILTERS; f++) /* no row is missing */
			if (f != FILTER_CONVOLVE && f != FILTER_COLORMATRIX && f != FILTER_LUT &&
			    f != FILTER_RESIZE)
				assert_true(cost_of(known_filters[f].name, type) >= 10);
	}
	assert_true(cost_of("gamma", PIXEL_U16) > 5 * cost_of("gamma", PIXEL_U8));
}

TEST(test_difference)
{
	const struct image grey = {3, 1, 1, PIXEL_U8, 0, {0}};
	struct chain *chain = chain_of("sobel=output=direction");
	struct difference d = {0};
	struct reference r;
	uint8_t other[3] = {0}; /* -pi is the same direction as pi */
	float wanted = NAN, slack = NAN;
	const struct reference none = {{0, 0, 1, 1}, 1, PIXEL_F32, 0, &wanted, &slack};

	assert_int_equal(reference_filter(chain, &grey, (uint8_t[]){2, 1, 0}, &r), ERR_OK);
	difference_add(&d, &r, other, 3);
	assert_true(d.samples == 3 && d.mismatches == 0 && d.largest == 0);
	other[2] = 3;
	difference_add(&d, &r, other, 3);
	assert_true(d.mismatches == 1 && d.largest == 3 && d.x == 2 && d.y == 0 && d.wanted == 255);
	reference_fini(&r);
	free(chain);
	/* Any result will do where the reference is NaN. */
	difference_add(&d, &none, &(float){5}, sizeof(float));
	assert_true(d.samples == 7 && d.mismatches == 1);
}

/* A sample in doubt is right, however far it is off, and its difference is not the largest. */
TEST(test_doubt)
{
	enum { WIDTH = 65 }; /* one more than are compared at a time */
	const struct image image = {WIDTH, 1, 1, PIXEL_U8, 0, {0}};
	struct chain *chain = chain_of("linear,threshold=value=0.4");
	struct difference d = {0};
	struct reference r;
	uint8_t pixels[WIDTH];

	memset(pixels, 101, WIDTH);
	assert_int_equal(reference_filter(chain, &image, pixels, &r), ERR_OK);
	for (int off = 1; off < 256; off += 254) {
		memset(pixels, off, WIDTH);
		difference_add(&d, &r, pixels, WIDTH);
		assert_true(d.mismatches == 0 && d.largest == 0);
		assert_int_equal(d.beyond_1, off > 1 ? WIDTH : 0);
	}
	reference_fini(&r);
	free(chain);
}
