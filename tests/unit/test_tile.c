/* Tilings: each tile lies in its arenas, in a slot of its own, and together they are the result. */
#include <stdlib.h>
#include <string.h>

#include "chains.h"
#include "wire/tile.h"

static enum error cut_image(struct tiling *t, const struct chain *chain, const struct image *image,
                            uint64_t arena)
{
	return tiling_init(t, chain, image, arena, arena, 1 << 20, &problem);
}

/* As one tile with a side that is a scan, or as tiles that lie one below the other on the other
 * side: all lie in their arenas, and together are the same rows. */
static void check_spread(const struct tiling *tiling, const struct chain *chain,
                         const struct image *image, uint64_t arena)
{
	for (enum tile_form form = TILE_DECODE; form <= TILE_ENCODE; form++) {
		struct tiling t = *tiling;
		struct tile whole, tile;

		if (!tiling_spread(&t, form)) {
			assert_memory_equal(&t, tiling, sizeof t);
			continue;
		}
		tiling_whole_tile(&t, form, 1, &whole);
		assert_int_equal(tile_valid(&whole, image, chain, arena, arena),
		                 image->type == PIXEL_U8);
		*(whole.width > 1 ? &whole.width : &whole.height) -= 1;
		assert_false(tile_valid(&whole, image, chain, arena, arena));
		for (uint32_t i = 0; i < t.count; i++) {
			uint64_t x, y;

			tiling_tile(&t, i, &tile);
			assert_true(tile_valid(&tile, image, chain, arena, arena));
			x = (tile.x0 - t.x0) * image_pixel_size(image);
			y = tile.y0 - t.y0;
			if (form == TILE_ENCODE)
				assert_int_equal(tile.in, whole.in + y * t.in_pitch + x);
			else
				assert_int_equal(tile.out, whole.out + y * t.out_pitch + x);
		}
	}
}

/* Every tile lies in its arenas, in a slot of its own, and the tiles cover the result. */
static void check_tiling(const struct chain *chain, const struct image *image, uint64_t arena,
                         uint64_t samples_max)
{
	struct tiling t;
	struct tile tile;
	uint32_t row = 0, column = 0;

	if (tiling_init(&t, chain, image, arena, arena, samples_max, &problem)) {
		assert_non_null(strstr(problem.detail, "largest width"));
		return;
	}
	assert_in_range(t.rows, 1, t.height);
	assert_true(t.slots >= SLOTS_MIN || t.slots == t.strips);
	assert_true(t.slots * t.columns <= SLOTS_MAX && t.count == t.strips * t.columns);
	assert_true(t.slots * t.in_slot <= arena && t.slots * t.out_slot <= arena);
	for (uint32_t i = 0; i < t.count; i++) {
		tiling_tile(&t, i, &tile);
		assert_true(tile_valid(&tile, image, chain, arena, arena));
		assert_int_equal(tile.y0, t.y0 + row);
		assert_int_equal(tile.x0, t.x0 + column);
		column += tile.width;
		if (column < t.width)
			continue;
		assert_int_equal(column, t.width);
		column = 0;
		row += tile.height;
		tile.in += arena - t.in_slot * t.slots + 2 * t.in_pitch;
		assert_false(tile_valid(&tile, image, chain, arena, arena) &&
		             i / t.columns % t.slots == t.slots - 1 && tile.height == t.rows);
	}
	assert_int_equal(row, t.height);
	check_spread(&t, chain, image, arena);
}

TEST(test_tiling)
{
	static const char *const filters[] = {"box=size=1", "gaussian=sigma=10",
	                                      "convolve=kernel=1 1 1 1 1",
	                                      "convolve=kernel=1 1 1 1 1,sobel"};
	static const uint32_t widths[] = {1, 2, 63, 64, 65, 1000, 20000, 300000};
	static const uint32_t heights[] = {1, 2, 17, 500, 20000};
	static const struct {
		uint64_t arena, samples_max;
	} bounds[] = {{1 << 16, 1},
	              {1 << 20, 1 << 16},
	              {1 << 26, 1 << 20},
	              {1 << 16, 1 << 20},
	              {1 << 20, 1 << 20}};

	for (size_t i = 0; i < 4 * 8 * 5 * PIXEL_TYPES; i++) {
		struct chain *chain = chain_of(filters[i % 4]);
		const struct image image = {
		    widths[i / 4 % 8], heights[i / 32 % 5], 3, (uint32_t)i / 160, 0, {0}};

		for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++)
			check_tiling(chain, &image, bounds[b].arena, bounds[b].samples_max);
		free(chain);
	}
}

/* Strips of a result of another size: what each needs of the image lies in its area; areas are
 * apart, or the same row of the image lies at the same place for all. */
static void check_resized(const struct chain *chain, const struct image *image, uint64_t arena)
{
	struct tiling t;
	struct tile tile;

	if (cut_image(&t, chain, image, arena)) {
		assert_true(strstr(problem.detail, "ratio from") ||
		            strstr(problem.detail, "fit arena-size"));
		return;
	}
	assert_true(t.slots >= SLOTS_MIN || t.slots == t.strips);
	assert_true(t.columns == 1);
	for (uint32_t i = 0; i < t.count; i++) {
		const int64_t top = tiling_top(&t, i), end = tiling_end(&t, i);

		tiling_tile(&t, i, &tile);
		assert_true(tile_valid(&tile, image, chain, arena, arena));
		assert_true(tiling_in_place(&t, i) + t.start + (uint64_t)(end - top) * t.in_pitch <=
		            arena);
		if (!t.joined)
			assert_true(t.start + (uint64_t)(end - top) * t.in_pitch <= t.in_slot);
		else if (!tiling_begins_anew(&t, i))
			assert_int_equal(tiling_in_place(&t, i) - tiling_in_place(&t, i - 1),
			                 (top - tiling_top(&t, i - 1)) * t.in_pitch);
	}
}

TEST(test_tiling_resized)
{
	static const char *const filters[] = {
	    "resize=width=200", "resize=width=500:enlarge=1,box=size=9",
	    "gaussian=sigma=20,resize=height=90",
	    "resize=width=100:height=100:fit=cover:kernel=nearest,gaussian=sigma=30",
	    "box=size=31,resize=height=1000:fit=fill:enlarge=1:kernel=box"};
	static const uint32_t sides[] = {1, 2, 63, 500, 1000, 9000, 20000};

	for (size_t i = 0; i < 5 * 7 * 7; i++) {
		struct chain *chain = chain_of(filters[i % 5]);
		const struct image image = {
		    sides[i / 5 % 7], sides[i / 35], 3, (uint32_t)i % PIXEL_TYPES, 0, {0}};

		for (uint64_t arena = 1 << 16; arena <= 1 << 26; arena <<= 5)
			check_resized(chain, &image, arena);
		free(chain);
	}
}

/* The data that travels to a device and back is hardly more than the pixels and their halo. */
TEST(test_tiling_dense)
{
	struct chain *chain = chain_of("gaussian=size=5");
	struct image image = {4096, 4096, 1, PIXEL_U8, 0, {0}};
	struct tiling t;

	assert_int_equal(cut_image(&t, chain, &image, 1 << 26), ERR_OK);
	assert_int_equal(t.out_slot, (uint64_t)t.rows * 4096);
	assert_in_range(t.in_slot, (t.rows + 4) * 4100, (t.rows + 4) * 4160 + ROW_ALIGNMENT);
	free(chain);
}

/* If a window is most of the arena, each row of the image is there once, until the strips begin
 * anew at the arena's start. */
TEST(test_tiling_shared)
{
	struct chain *chain = chain_of("gaussian=sigma=90");
	struct image image = {9000, 6000, 3, PIXEL_U8, 0, {0}};
	const uint64_t arena = 1 << 26;
	uint32_t anew = 0;
	struct tile above, tile;
	struct tiling t;

	assert_int_equal(cut_image(&t, chain, &image, arena), ERR_OK);
	assert_true(t.shared && t.slots >= SLOTS_MIN);
	for (uint32_t strip = 0; strip < t.strips; strip++) {
		tiling_tile(&t, strip * t.columns, &tile);
		assert_true(tile_valid(&tile, &image, chain, arena, arena));
		anew += tiling_begins_anew(&t, strip);
		if (tiling_begins_anew(&t, strip))
			assert_int_equal(tile.in,
			                 t.start + (uint64_t)t.halo_y * t.in_pitch + t.margin);
		else
			assert_int_equal(tile.in, above.in + (uint64_t)t.rows * t.in_pitch);
		above = tile;
	}
	assert_int_equal(anew, (t.strips + t.slots - 1) / t.slots);
	tiling_set_pages(&t, 2);
	assert_true(tiling_begins_anew(&t, t.page_strips));
	image.width = 2000;
	assert_int_equal(cut_image(&t, chain, &image, arena), ERR_OK);
	assert_false(t.shared);
	free(chain);
}

/* The sigma that a refusal names fits, in strips that are not hardly more than halo, and a larger
 * one does not. It is that of the Gaussian which reaches farthest. */
TEST(test_tiling_largest_sigma)
{
	static const struct {
		const char *filters;
		enum border border;
		uint32_t bands, call;
		bool is_named;
	} rows[] = {
	    {"gaussian=sigma=90", BORDER_REPLICATE, 3, 0, true},
	    {"unsharp=sigma=100", BORDER_CROP, 3, 0, true},
	    {"sobel,gaussian=sigma=8.5,gaussian=sigma=60", BORDER_WRAP, 3, 2, true},
	    {"box=size=601,unsharp=sigma=9", BORDER_REPLICATE, 3, 1, true},
	    {"gaussian=sigma=90:size=601", BORDER_REPLICATE, 4, 0, false},
	    {"box=size=601,gaussian=sigma=90", BORDER_REPLICATE, 4, 1, false},
	    {"gaussian=sigma=90", BORDER_REPLICATE, 21, 0, true},
	};
	const uint64_t arena = 1 << 26;
	struct tiling t;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chain *chain = chain_of(rows[i].filters);
		double *sigma = &chain->call[rows[i].call].value[GAUSSIAN_SIGMA];
		struct image image = {30000, 6000, rows[i].bands, PIXEL_U8, 0, {0}};
		const char *at;

		chain->border = rows[i].border;
		assert_int_equal(cut_image(&t, chain, &image, arena), ERR_DOES_NOT_FIT);
		assert_non_null(strstr(problem.detail, "largest width is "));
		at = strstr(problem.detail, "largest sigma is ");
		assert_int_equal(at != NULL, rows[i].is_named);
		if (at) {
			*sigma = atof(at + 17);
			assert_int_equal(cut_image(&t, chain, &image, arena), ERR_OK);
			*sigma += 0.1;
			assert_int_equal(cut_image(&t, chain, &image, arena), ERR_DOES_NOT_FIT);
		}
		free(chain);
	}
}

/* Strips that would fit, but be hardly more than halo, are refused where a smaller sigma helps. */
TEST(test_tiling_mostly_halo)
{
	struct chain *chain = chain_of("gaussian=sigma=90"), *box = chain_of("box=size=601");
	struct image image = {20000, 6000, 3, PIXEL_U8, 0, {0}};
	const uint64_t arena = 1 << 26;
	struct tiling t;

	assert_int_equal(cut_image(&t, chain, &image, arena), ERR_DOES_NOT_FIT);
	assert_non_null(strstr(problem.detail, "largest sigma is "));
	image.width = (uint32_t)atoi(strstr(problem.detail, "largest width is ") + 17);
	assert_int_equal(cut_image(&t, chain, &image, arena), ERR_OK);
	assert_true(2 * t.rows + 8 > t.halo_y);
	image.height = 200; /* all of it is in one strip */
	assert_int_equal(cut_image(&t, chain, &image, arena), ERR_OK);
	image.width = 35000;
	image.height = 6000;
	assert_int_equal(cut_image(&t, box, &image, arena), ERR_OK);
	assert_true(2 * t.rows < t.halo_y);
	free(chain);
	free(box);
}

TEST(test_tile_hostile)
{
	struct chain *chain = chain_of("box");
	struct image image = {100, 100, 1, PIXEL_U8, 0, {0}};
	struct tiling t;
	struct tile good, bad;

	assert_int_equal(cut_image(&t, chain, &image, 1 << 16), ERR_OK);
	tiling_tile(&t, 0, &good);
	assert_true(tile_valid(&good, &image, chain, 1 << 16, 1 << 16));
#define BAD(field, value)                                                                          \
	bad = good;                                                                                \
	bad.field = value;                                                                         \
	assert_false(tile_valid(&bad, &image, chain, 1 << 16, 1 << 16))
	BAD(width, 0);
	BAD(width, 101);
	BAD(height, UINT32_MAX);
	BAD(y0, 100);
	BAD(x0, 1);
	BAD(in, 0);
	BAD(in, UINT64_MAX - 63);
	BAD(in, 1);
	BAD(out, 1 << 16);
	BAD(out, UINT64_MAX - 63);
	BAD(in_pitch, 64);
	BAD(out_pitch, 0);
	BAD(in_pitch, UINT32_MAX - 63);
	BAD(in_size, 1); /* a scan's */
	BAD(out_size, 1);
#undef BAD
	free(chain);
}
