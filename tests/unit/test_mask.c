/* Results mixed with their originals by weights: to the bit at either end, between them as a sum in
 * double precision. tests/http/test_mask.py has whole masks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/tiles.h"
#include "unit.h"

enum { PIXELS = 201 };

static double weight_of(uint32_t i)
{
	return i % 7 < 2 ? 0 : i % 7 < 4 ? 1 : (i % 100) / 100.0;
}

/* The share of the result in a sample, which counts by alpha if it is a colour. */
static double share_of(const struct image *image, const void *result, const void *original,
                       uint32_t i, uint32_t band, double weight)
{
	const uint32_t last = image->bands - 1;
	const size_t alpha = (size_t)i * image->bands + last;
	double after, sum;

	if (!image->alpha || band == last)
		return weight;
	after = image_get_sample(result, alpha, (enum pixel_type)image->type) * weight;
	sum =
	    after + image_get_sample(original, alpha, (enum pixel_type)image->type) * (1 - weight);
	return sum > 0 ? after / sum : weight;
}

static void check(const struct image *image)
{
	const enum pixel_type type = (enum pixel_type)image->type;
	const size_t samples = (size_t)PIXELS * image->bands, size = image_row_size(image);
	const double full = pixel_type_rows[type].full_scale;
	uint8_t *original = malloc(size), *result = malloc(size), *mixed = malloc(size + 1);
	double weight[PIXELS];

	for (size_t i = 0; i < samples; i++) {
		const double other = type == PIXEL_F32 ? 1.3 * full : floor(full / 3);

		image_put_sample(original, i, type, i % 3 ? floor(full * (double)(i % 5) / 4) : 0);
		image_put_sample(result, i, type, i % 11 ? other : 0);
	}
	for (uint32_t i = 0; i < PIXELS; i++)
		weight[i] = weight_of(i);
	memcpy(mixed, result, size);
	mixed[size] = 77;
	mask_mix(mixed, original, weight, PIXELS, image);
	assert_int_equal(mixed[size], 77);
	for (size_t i = 0; i < samples; i++) {
		const uint32_t pixel = (uint32_t)(i / image->bands);
		const double share = share_of(image, result, original, pixel,
		                              (uint32_t)(i % image->bands), weight[pixel]);
		const double wanted = share * image_get_sample(result, i, type) +
		                      (1 - share) * image_get_sample(original, i, type);

		assert_true(fabs(image_get_sample(mixed, i, type) - wanted) <=
		            (type == PIXEL_F32 ? 1e-6 : 0.5 + 1e-6));
		if (weight[pixel] <= 0 || weight[pixel] >= 1)
			assert_true(
			    image_get_sample(mixed, i, type) ==
			    image_get_sample(weight[pixel] > 0 ? result : original, i, type));
	}
	free(original);
	free(result);
	free(mixed);
}

TEST(test_every_kind)
{
	for (uint32_t type = 0; type < PIXEL_TYPES; type++)
		for (uint32_t bands = 1; bands <= BANDS_MAX; bands++)
			for (uint32_t alpha = 0; alpha <= !(bands % 2); alpha++)
				check(&(struct image){PIXELS, 1, bands, type, alpha, {0}});
}

/* NaN stays, with all its bits, where nothing is mixed. */
TEST(test_bits)
{
	const struct image image = {3, 1, 1, PIXEL_F32, 0, {0}};
	const uint32_t original[] = {0x7fa00001, 0x7fa00001, 0x3f800000};
	const uint32_t expected[] = {0x7fa00001, 0xffc12345};
	uint32_t result[] = {0x3f800000, 0xffc12345, 0x7f800000};

	mask_mix((uint8_t *)result, (const uint8_t *)original, (const double[]){0, 1, 0.5}, 3,
	         &image);
	assert_memory_equal(result, expected, sizeof expected);
	assert_int_equal(result[2], 0x7f800000); /* infinite */
}
