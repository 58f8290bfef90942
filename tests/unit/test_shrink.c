/* The points of a grid, and the pixels that they make, against the Gaussian by its definition:
 * every pixel of an axis with the weights of all places, in the image and outside, that take their
 * value from it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "border.h"
#include "common/shrink.h"

enum { SIDE = 96, SAMPLES = SIDE * SIDE * BANDS_MAX };

static const double border_pixel[BANDS_MAX] = {200, 17, 90, 130};

/* What pixel x counts for the one at p; *outside: what the constant does. */
static void weigh(double sigma, int n, enum border border, int p, double *weight, double *outside)
{
	const int radius = (int)ceil((sigma <= LATTICE_SIGMA ? 3 : 8) * sigma);
	double sum = 0;

	*outside = 0;
	for (int x = 0; x < n; x++)
		weight[x] = 0;
	for (int t = -radius; t <= radius; t++) {
		const double w = exp(-0.5 * t * t / (sigma * sigma));
		const int at = p + t;

		sum += w;
		if (border == BORDER_CONSTANT && (at < 0 || at >= n))
			*outside += w;
		else
			weight[border_map(at, n, (int)border)] += w;
	}
	for (int x = 0; x < n; x++)
		weight[x] /= sum;
	*outside /= sum;
}

/* A sample in its form. */
static double sample(const struct image *image, enum shrink_form form, const double *pixel,
                     uint32_t b)
{
	const double middle = pixel_type_midpoint(image->type);
	const double luma = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];

	if (form == SHRINK_WEIGHTED && b + 1 < image->bands)
		return pixel[b] * pixel[image->bands - 1];
	if (form != SHRINK_YCC || b > 2)
		return pixel[b];
	return b == 0   ? luma
	       : b == 1 ? (pixel[2] - luma) / 1.772 + middle
	                : (pixel[0] - luma) / 1.402 + middle;
}

/* Blurs along one direction: n places that are `apart` from one another, of `lines` lines. */
static void blur(double *pixels, const struct image *image, bool down, double sigma,
                 enum border border, const double *outside)
{
	const int n = (int)(down ? image->height : image->width);
	const uint32_t lines = down ? image->width : image->height, bands = image->bands;
	const size_t apart = down ? (size_t)bands * image->width : bands;
	const size_t next = down ? bands : (size_t)bands * image->width;
	double weight[SIDE], beyond, line[SIDE * BANDS_MAX];

	for (uint32_t i = 0; i < lines; i++) {
		double *at = pixels + i * next;

		for (int p = 0; p < n; p++) {
			weigh(sigma, n, border, p, weight, &beyond);
			for (uint32_t b = 0; b < bands; b++) {
				double sum = beyond * outside[b];

				for (int x = 0; x < n; x++)
					sum += weight[x] * at[(size_t)x * apart + b];
				line[(size_t)p * bands + b] = sum;
			}
		}
		for (int p = 0; p < n; p++)
			memcpy(at + (size_t)p * apart, line + (size_t)p * bands,
			       bands * sizeof *line);
	}
}

/* What the points make of pixel (x, y). */
static double grown(const struct grid *g,
                    double weights[GRID_AXES][LATTICE_TAPS_MAX * GRID_STRIDE_MAX],
                    const double *words, uint32_t x, uint32_t y, uint32_t b)
{
	const uint32_t place[] = {x + g->axis[GRID_X].span.phase, y + g->axis[GRID_Y].span.phase};
	const struct lattice *across = &g->axis[GRID_X].lattice, *down = &g->axis[GRID_Y].lattice;
	double sum = 0;

	for (uint32_t j = 0; j < down->taps; j++)
		for (uint32_t i = 0; i < across->taps; i++) {
			const size_t row = place[GRID_Y] / down->stride + j;
			const size_t column = place[GRID_X] / across->stride + i;

			assert_true(row < g->axis[GRID_Y].span.count);
			assert_true(column < g->axis[GRID_X].span.count);
			sum +=
			    weights[GRID_Y][j * down->stride + place[GRID_Y] % down->stride] *
			    weights[GRID_X][i * across->stride + place[GRID_X] % across->stride] *
			    (double)grid_get(
			        words, (row * g->axis[GRID_X].span.count + column) * g->bands + b);
		}
	return sum;
}

static void *random_pixels(const struct image *image)
{
	const size_t count = (size_t)image->width * image->height * image->bands;
	const double full = pixel_type_full_scale(image->type);
	void *pixels = malloc((size_t)image_size(image));

	assert_non_null(pixels);
	for (size_t i = 0; i < count; i++)
		image_put_sample(pixels, i, image->type,
		                 image->type == PIXEL_F32 ? rand() % 2001 / 1000.0 - 1
		                                          : rint(rand() % 1001 / 1000.0 * full));
	return pixels;
}

/* The image in its form, blurred by the definition. */
static void define(const struct image *image, enum shrink_form form, const double sigma[GRID_AXES],
                   enum border border, const void *pixels, double *wanted)
{
	const size_t count = (size_t)image->width * image->height * image->bands;
	double pixel[BANDS_MAX] = {0}, outside[BANDS_MAX];

	for (size_t i = 0; i < count; i += image->bands) {
		for (uint32_t b = 0; b < image->bands; b++)
			pixel[b] = image_get_sample(pixels, i + b, image->type);
		for (uint32_t b = 0; b < image->bands; b++)
			wanted[i + b] = sample(image, form, pixel, b);
	}
	for (uint32_t b = 0; b < image->bands; b++)
		outside[b] = sample(image, form, border_pixel, b);
	blur(wanted, image, false, sigma[GRID_X], border, outside);
	blur(wanted, image, true, sigma[GRID_Y], border, outside);
}

static double *shrink(const struct image *image, enum shrink_form form,
                      const double sigma[GRID_AXES], enum border border, const void *pixels)
{
	const uint64_t count = grid_words(sigma, image->width, image->height, image->bands);
	double *words = malloc((size_t)count * sizeof *words);
	struct shrink *s;

	assert_non_null(words);
	assert_int_equal(shrink_new(sigma, image, form, border, border_pixel, &s), ERR_OK);
	for (uint32_t y = 0; y < image->height; y++)
		shrink_row(s, (const char *)pixels + y * image_row_size(image));
	shrink_end(s, words);
	shrink_free(&s);
	return words;
}

static void try_image(const struct image *image, enum channels channels,
                      const double sigma[GRID_AXES], enum border border)
{
	static double wanted[SAMPLES], weights[GRID_AXES][LATTICE_TAPS_MAX * GRID_STRIDE_MAX];
	const enum shrink_form form = shrink_form(image, channels);
	const struct grid grid = grid_for(sigma, image->width, image->height, image->bands);
	void *pixels = random_pixels(image);
	double *words = shrink(image, form, sigma, border, pixels), most = 0;
	const size_t count = (size_t)image->width * image->height * image->bands;

	for (int i = 0; i < GRID_AXES; i++)
		grid_weights(&grid.axis[i], weights[i]);
	define(image, form, sigma, border == BORDER_CROP ? BORDER_REPLICATE : border, pixels,
	       wanted);
	for (uint32_t b = 0; b < image->bands; b++)
		most = fmax(most, sample(image, form, border_pixel, b));
	for (size_t i = 0; i < (size_t)image->width * image->height; i++) {
		double pixel[BANDS_MAX] = {0};

		for (uint32_t b = 0; b < image->bands; b++)
			pixel[b] = image_get_sample(pixels, i * image->bands + b, image->type);
		for (uint32_t b = 0; b < image->bands; b++)
			most = fmax(most, fabs(sample(image, form, pixel, b)));
	}
	for (size_t i = 0; i < count; i++) {
		const uint32_t pixel = (uint32_t)(i / image->bands);
		const double got = grown(&grid, weights, words, pixel % image->width,
		                         pixel / image->width, (uint32_t)(i % image->bands));

		/* Floats hold the points; values have either sign. */
		assert_true(fabs(got - wanted[i]) <= (2 * LATTICE_ERROR + 2e-7) * most);
	}
	free(pixels);
	free(words);
}

static void test_definition(void **state)
{
	static const struct image images[] = {
	    {37, 23, 1, PIXEL_U8, 0},  {1, 1, 3, PIXEL_U16, 0}, {1, 61, 2, PIXEL_U8, 1},
	    {90, 1, 4, PIXEL_F32, 1},  {2, 3, 1, PIXEL_F32, 0}, {41, 96, 3, PIXEL_U8, 0},
	    {17, 30, 4, PIXEL_U16, 1}, {29, 5, 4, PIXEL_U8, 0},
	};
	static const double sigmas[][GRID_AXES] = {
	    {101, 101}, {0.7, 150}, {1000, 8.3}, {133, 30}, {25, 12}};
	static const enum channels channels[] = {CHANNELS_ALL, CHANNELS_LUMA, CHANNELS_COLOR,
	                                         CHANNELS_CHROMA, CHANNELS_ALPHA};
	size_t k = 0;

	(void)state;
	srand(5);
	for (size_t i = 0; i < sizeof images / sizeof *images; i++)
		for (enum border border = 0; border < BORDERS; border++, k++)
			try_image(&images[i], channels[k % 5], sigmas[(k + i) % 5], border);
}

static void test_forms(void **state)
{
	const struct image rgb = {1, 1, 3, PIXEL_U8, 0}, rgba = {1, 1, 4, PIXEL_U8, 1},
	                   cmyk = {1, 1, 4, PIXEL_U8, 0}, grey = {1, 1, 1, PIXEL_U8, 0};

	(void)state;
	assert_int_equal(shrink_form(&rgb, CHANNELS_ALL), SHRINK_PLAIN);
	assert_int_equal(shrink_form(&rgb, CHANNELS_CHROMA), SHRINK_YCC);
	assert_int_equal(shrink_form(&rgba, CHANNELS_LUMA), SHRINK_YCC);
	assert_int_equal(shrink_form(&rgba, CHANNELS_ALL), SHRINK_WEIGHTED);
	assert_int_equal(shrink_form(&rgba, CHANNELS_COLOR), SHRINK_WEIGHTED);
	assert_int_equal(shrink_form(&rgba, CHANNELS_ALPHA), SHRINK_PLAIN);
	assert_int_equal(shrink_form(&rgba, CHANNELS_GREEN), SHRINK_PLAIN);
	assert_int_equal(shrink_form(&cmyk, CHANNELS_ALL), SHRINK_PLAIN);
	assert_int_equal(shrink_form(&grey, CHANNELS_LUMA), SHRINK_PLAIN);
}

/* What is not a number stays within its reach, for every border. */
static void test_not_a_number(void **state)
{
	const struct image image = {3000, 1, 1, PIXEL_F32, 0};
	const double sigma[GRID_AXES] = {101, 101};
	const struct grid grid = grid_for(sigma, image.width, image.height, 1);
	const struct lattice *l = &grid.axis[GRID_X].lattice;
	static double weights[GRID_AXES][LATTICE_TAPS_MAX * GRID_STRIDE_MAX];
	static float pixels[3000];

	(void)state;
	pixels[1500] = NAN;
	for (int i = 0; i < GRID_AXES; i++)
		grid_weights(&grid.axis[i], weights[i]);
	for (enum border border = 0; border < BORDERS; border++) {
		double *words = shrink(&image, SHRINK_PLAIN, sigma, border, pixels);

		assert_true(isnan(grown(&grid, weights, words, 1500, 0, 0)) != 0);
		assert_true(!isnan(grown(&grid, weights, words, 1500 - l->reach - 1, 0, 0)));
		assert_true(!isnan(grown(&grid, weights, words, 1500 + l->reach + 1, 0, 0)));
		free(words);
	}
}

/* No size, of whatever process, makes the words overflow. */
static void test_sizes(void **state)
{
	const double sigma[GRID_AXES] = {101, 0.1}, large[GRID_AXES] = {1000, 1000};

	(void)state;
	assert_int_equal(grid_words(sigma, UINT32_MAX, 1, 4), UINT32_MAX);
	assert_true(grid_words(sigma, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX, 4) > GRID_WORDS_MAX);
	assert_true(grid_words(sigma, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX, 4) <= UINT32_MAX);
	assert_true(grid_words(large, 8192, 8192, 3) < 5000);
	assert_int_equal(grid_words(large, 1, 1, 1), 18); /* six by six floats */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_definition),
	    cmocka_unit_test(test_forms),
	    cmocka_unit_test(test_not_a_number),
	    cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
