/* The arithmetic of a change of size: sizes, weights, and which pixels of an image a result needs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chains.h"
#include "filters/chain_size.h"

static const char *const kernels[] = {"lanczos3", "lanczos2", "mitchell", "catmullrom",
                                      "triangle", "box",      "nearest"};

static struct resizing resizing_of(enum resample kernel, uint32_t from, uint32_t to)
{
	char text[80];
	const struct image image = {.width = from, .height = 1, .bands = 1};
	struct geometry geometry;
	struct chain *chain;

	snprintf(text, sizeof text, "resize=width=%u:fit=fill:enlarge=1:kernel=%s", to,
	         kernels[kernel]);
	chain = chain_of(text);
	assert_int_equal(chain_geometry(chain, &image, &geometry, &problem), ERR_OK);
	free(chain);
	return geometry.scale[0];
}

/* Weights sum to 1, are those of few pixels, which follow one another, and are symmetric if the
 * result is. */
TEST(test_weights)
{
	static const uint32_t sides[][2] = {{1, 1},    {1, 100},   {100, 1},
	                                    {7, 7},    {3, 200},   {640, 97},
	                                    {97, 640}, {1000, 33}, {1000000, 10007}};

	for (enum resample k = 0; k < RESAMPLES; k++)
		for (size_t s = 0; s < sizeof sides / sizeof *sides; s++) {
			const struct resizing r = resizing_of(k, sides[s][0], sides[s][1]);
			double *weight = calloc(resizing_taps(&r), sizeof *weight);
			struct extent before = {INT32_MIN, 0};

			for (int32_t i = 0; i < (int32_t)r.to; i++) {
				const struct extent from = resizing_weights(&r, i, weight),
				                    all =
				                        resizing_source(&r, (struct extent){i, 1});
				double sum = 0, centre = 0;

				assert_in_range(from.count, 1, resizing_taps(&r));
				assert_true(from.first >= before.first &&
				            from.first + (int64_t)from.count >=
				                before.first + (int64_t)before.count);
				assert_memory_equal(&all, &from, sizeof all);
				for (uint32_t j = 0; j < from.count; j++) {
					sum += weight[j];
					centre += weight[j] * (from.first + (int32_t)j + 0.5);
				}
				assert_true(fabs(sum - 1) < 1e-12);
				/* It keeps its place, to half a pixel where there are few. */
				assert_true(fabs(centre - (i + 0.5) * r.step) <=
				            0.5 + 0.5 * fmax(1, r.step) * (k >= RESAMPLE_BOX));
				before = from;
			}
			free(weight);
		}
}

/* At the same size each pixel stays exactly as it is. */
TEST(test_same_size)
{
	for (enum resample k = 0; k < RESAMPLES; k++) {
		const struct resizing r = resizing_of(k, 50, 50);
		double weight[8];

		assert_true(resizing_taps(&r) <= 8);
		for (int32_t i = 0; i < 50; i++) {
			const struct extent from = resizing_weights(&r, i, weight);

			if (k == RESAMPLE_MITCHELL) /* it blurs */
				continue;
			for (int32_t j = 0; j < (int32_t)from.count; j++)
				assert_true(weight[j] == (from.first + j == i));
		}
	}
}

/* Tiles of a result need just the pixels that the whole result needs, and reach as far as any pixel
 * of them. */
TEST(test_sources)
{
	static const char *const chains[] = {
	    "resize=width=10:fit=fill", "resize=width=777:enlarge=1,box=size=31",
	    "resize=width=90:height=20:fit=cover:gravity=west,gaussian=sigma=2",
	    "box,resize=height=50:kernel=nearest"};

	for (size_t c = 0; c < sizeof chains / sizeof *chains; c++)
		for (int wraps = 0; wraps < 2; wraps++) {
			struct chain *chain = chain_of(chains[c]);
			const struct image image = {200, 300, 1, PIXEL_U8, 0, {0}};
			struct geometry g;

			assert_int_equal(chain_geometry(chain, &image, &g, &problem), ERR_OK);
			g.wraps = wraps;
			for (int d = 0; d < 2; d++) {
				const struct extent whole = geometry_source(&g, d, 0, g.size[d]);

				for (uint32_t first = 0; first < g.size[d]; first += 7) {
					const uint32_t count =
					    first + 9 > g.size[d] ? g.size[d] - first : 9;
					const struct extent part =
					    geometry_source(&g, d, first, count);

					assert_true(part.first >= whole.first);
					assert_true(part.first + (int64_t)part.count <=
					            whole.first + (int64_t)whole.count);
				}
			}
			free(chain);
		}
}

/* A draft changes neither the size nor the place of a result's pixels in the image. */
TEST(test_draft)
{
	static const char *const chains[] = {
	    "resize=width=10", "resize=width=31:height=7:fit=fill,box",
	    "resize=width=20:height=20:fit=cover:gravity=southeast"};
	static const uint32_t sizes[][2] = {{4001, 3001}, {1600, 1200}, {997, 8}, {9, 5000}};

	for (size_t c = 0; c < sizeof chains / sizeof *chains; c++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes * 12; i++) {
			struct chain *chain = chain_of(chains[c]);
			struct image image = {
			    .width = sizes[i / 12][0], .height = sizes[i / 12][1], .bands = 1};
			struct geometry of, drawn;
			uint32_t by, up;

			if (chain_geometry(chain, &image, &of, &problem)) {
				free(chain);
				continue;
			}
			by = 2u << i % 3;
			up = i / 3 % 2 * (by - 1);
			image_shrink(&image, (image.width + up) / by, (image.height + up) / by, by);
			if (i % 12 > 5) { /* turned upside down */
				image.draft.before[1] = image.draft.after[1];
				image.draft.after[1] = 0;
			}
			assert_true(image_valid(&image));
			assert_int_equal(chain_geometry(chain, &image, &drawn, &problem), ERR_OK);
			for (int d = 0; d < 2; d++) {
				const struct resizing *r = &drawn.scale[d], *whole = &of.scale[d];
				const uint32_t side = d ? image.height : image.width;
				const double pixel = ((double)whole->from + image.draft.before[d] +
				                      image.draft.after[d]) /
				                     side;

				assert_int_equal(drawn.size[d], of.size[d]);
				assert_int_equal(r->from, side);
				assert_true(pixel == by);
				for (uint32_t k = 0; k <= of.size[d]; k++)
					assert_true(fabs((r->first + k * r->step) * pixel -
					                 image.draft.before[d] - whole->first -
					                 k * whole->step) < 1e-6);
			}
			free(chain);
		}
}

/* A resize shrinks a draft by at least half, in both directions. */
TEST(test_draft_allowed)
{
	static const struct {
		const char *chain;
		uint32_t by;
	} rows[] = {{"resize=width=251", 1},
	            {"resize=width=250", 2},
	            {"resize=width=126", 2},
	            {"resize=width=125", 4},
	            {"resize=width=62,box", 8},
	            {"resize=width=20", 8},
	            {"resize=width=20:kernel=nearest", 1},
	            {"resize=width=20:height=400:fit=fill", 1},
	            {"resize=width=20:height=100:fit=cover", 4},
	            {"box,resize=width=20", 1},
	            {"box", 1}};
	const struct image image = {.width = 1000, .height = 800, .bands = 3};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chain *chain = chain_of(rows[i].chain);

		assert_int_equal(chain_draft(chain, &image), rows[i].by);
		free(chain);
	}
}

TEST(test_refused)
{
	static const char *const chains[][2] = {
	    {"resize", "width, height or both"},
	    {"resize=width=9:fit=cover", "expected both sides"},
	    {"resize=width=9,box,resize=width=4", "at most one resize"}};

	for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
		struct chain *chain = malloc(sizeof *chain);

		chain_init(chain);
		assert_int_equal(chain_parse(chain, chains[i][0], &problem), ERR_OK);
		assert_int_equal(chain_check(chain, &problem), ERR_BAD_PARAMETER);
		assert_non_null(strstr(problem.detail, chains[i][1]));
		free(chain);
	}
}
