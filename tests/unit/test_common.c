/* What the programs share: parsers, halo and tile arithmetic, border mapping, messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "border.h"
#include "common/arena.h"
#include "common/chain.h"
#include "common/chain_check.h"
#include "common/tile.h"
#include "common/wire.h"

static struct problem problem;

/* A chain of one filter with parameters "key=value:key=value". */
static struct chain *chain_of(const char *text)
{
	struct chain *chain = malloc(sizeof *chain);

	chain_init(chain);
	assert_int_equal(chain_parse(chain, text, &problem), ERR_OK);
	assert_int_equal(chain_check(chain, &problem), ERR_OK);
	assert_true(chain_valid(chain));
	return chain;
}

static enum error parse_result(const char *text)
{
	struct chain *chain = malloc(sizeof *chain);
	enum error e;

	chain_init(chain);
	e = chain_parse(chain, text, &problem);
	if (!e)
		e = chain_check(chain, &problem);
	free(chain);
	return e;
}

static void test_border_map(void **state)
{
	/* One period of each mode of abc; replicate has none. */
	static const char *const period[] = {"", "abccba", "abcb", "abc"};

	(void)state;
	for (int place = -20; place < 20; place++) {
		int end = place < 0 ? 0 : place > 2 ? 2 : place;

		assert_int_equal(border_map(place, 3, 0), end);
		for (int mode = 1; mode < 4; mode++) {
			int length = (int)strlen(period[mode]);

			assert_int_equal("abc"[border_map(place, 3, mode)],
			                 period[mode][(place % length + length) % length]);
		}
	}
	assert_int_equal(border_map(-5, 1, 2), 0);
	assert_int_equal(border_map(7, 1, 1), 0);
}

static void test_parse_valid(void **state)
{
	struct chain *chain = chain_of("gaussian=sigma=2.5,box=size=7,convolve=kernel=1 2 1;2 4 "
	                               "2;1 2 1:offset=3,sobel=output=y");
	uint32_t x, y;

	(void)state;
	assert_int_equal(chain->count, 4);
	assert_true(chain->call[0].value[0] == 2.5);
	assert_int_equal(chain->call[2].matrix_width, 3);
	assert_int_equal(chain->call[2].matrix_height, 3);
	assert_true(chain->coefficient[4] == 4);
	assert_true(chain->call[3].value[0] == 2);
	chain_halo(chain, &x, &y);
	assert_int_equal(x, 8 + 3 + 1 + 1);
	assert_int_equal(y, x);
	free(chain);
}

static void test_parse_invalid(void **state)
{
	static const struct {
		const char *text;
		enum error error;
		const char *parameter, *detail;
	} rows[] = {
	    {"", ERR_BAD_PARAMETER, "filters", "at least one filter"},
	    {"sobel,", ERR_UNKNOWN_FILTER, "filter", "did you mean"},
	    {"gausian", ERR_UNKNOWN_FILTER, "filter", "gaussian"},
	    {"sobl", ERR_UNKNOWN_FILTER, "filter", "sobel"},
	    {"gaussian=sigma=x", ERR_BAD_PARAMETER, "sigma", "number from 0.1 to 100"},
	    {"gaussian=sigma=nan", ERR_BAD_PARAMETER, "sigma", "number"},
	    {"gaussian=sigma=0x10", ERR_BAD_PARAMETER, "sigma", "number"},
	    {"gaussian=sigma=1e999", ERR_BAD_PARAMETER, "sigma", "number"},
	    {"gaussian=sigma=0", ERR_BAD_PARAMETER, "sigma", "0.1 to 100"},
	    {"gaussian=size=4", ERR_BAD_PARAMETER, "size", "odd whole number"},
	    {"box=size=603", ERR_BAD_PARAMETER, "size", "to 601"},
	    {"box=radius=3", ERR_BAD_PARAMETER, "radius", "box takes size"},
	    {"gaussian=3", ERR_BAD_PARAMETER, "filters", "key=value"},
	    {"sobel=output=z", ERR_BAD_PARAMETER, "output", "magnitude|x|y"},
	    {"convolve", ERR_BAD_PARAMETER, "kernel", "needs kernel"},
	    {"convolve=kernel=1 2;3 4", ERR_BAD_PARAMETER, "kernel", "2x2"},
	    {"convolve=kernel=1 2 1;2 4", ERR_BAD_PARAMETER, "kernel", "row 2"},
	    {"convolve=kernel=1;2;", ERR_BAD_PARAMETER, "kernel", "row 3"},
	    {"convolve=kernel=1 a 1", ERR_BAD_PARAMETER, "kernel", "row 1"},
	    {"convolve=kernel=1:scale=0", ERR_BAD_PARAMETER, "scale", "not 0"},
	    {"sobel,sobel,sobel,sobel,sobel,sobel,sobel,sobel,sobel", ERR_BAD_PARAMETER, "filters",
	     "at most 8"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(parse_result(rows[i].text), rows[i].error);
		assert_string_equal(problem.parameter, rows[i].parameter);
		assert_non_null(strstr(problem.detail, rows[i].detail));
	}
}

static void test_matrix_limits(void **state)
{
	char *text = malloc(65 * 65 * 2 + 64);

	(void)state;
	for (int side = 63; side <= 65; side += 2) {
		char *at = text + sprintf(text, "convolve=kernel=");

		for (int j = 0; j < side; j++)
			for (int i = 0; i < side; i++)
				at += sprintf(at, "1%s",
				              i < side - 1   ? " "
				              : j < side - 1 ? ";"
				                             : "");
		assert_int_equal(parse_result(text), side == 63 ? ERR_OK : ERR_BAD_PARAMETER);
	}
	free(text);
}

/* What a process that has been taken over might send. */
static void test_chain_hostile(void **state)
{
	struct chain *chain = chain_of("sobel,convolve=kernel=1,box");

	(void)state;
#define BAD(field, value, good)                                                                    \
	chain->field = value;                                                                      \
	assert_false(chain_valid(chain));                                                          \
	chain->field = good;                                                                       \
	assert_true(chain_valid(chain))
	BAD(count, 0, 3);
	BAD(count, CHAIN_FILTERS_MAX + 1, 3);
	BAD(border, BORDERS, 0);
	BAD(border_values, BANDS_MAX + 1, 0);
	BAD(call[0].filter, FILTERS, FILTER_SOBEL);
	BAD(call[0].value[0], NAN, 0);
	BAD(call[0].value[0], 4, 0);
	BAD(call[0].channels, CHANNELS, CHANNELS_ALL);
	BAD(variant, KERNEL_EXTEND + 1, VARIANT_REFERENCE);
	BAD(variant, VARIANT_REFERENCE + 1, KERNEL_MATRIX + 1);
	BAD(call[1].value[1], 0, NAN);
	BAD(call[1].matrix_width, 2, 1);
	BAD(call[1].matrix_height, 65, 1);
	BAD(call[1].matrix_first, CHAIN_COEFFICIENTS_MAX, 0);
	BAD(call[2].value[0], NAN, 3);
#undef BAD
	free(chain);
}

static double coefficient_sum(const struct operation *op, size_t first, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += op->coefficients[first + i];
	return sum;
}

static void test_lower_gaussian(void **state)
{
	struct chain *chain =
	    chain_of("gaussian=sigma=1.1,gaussian=size=5,gaussian=size=5:sigma=2");
	static const uint32_t radius[] = {4, 2, 2};
	static const double sigma[] = {1.1, 1.1, 2};
	struct operation op;

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint32_t r = radius[i];

		assert_int_equal(filter_lower(&chain->call[i], chain->coefficient, &op), ERR_OK);
		assert_int_equal(op.kind, OPERATION_SEPARABLE);
		assert_int_equal(op.radius_x, r);
		assert_true(op.smoothing);
		assert_true(fabs(coefficient_sum(&op, 0, 2 * r + 1) - 1) < 1e-12);
		assert_true(fabs(op.coefficients[r + 1] / op.coefficients[r] -
		                 exp(-1 / (2 * sigma[i] * sigma[i]))) < 1e-12);
		operation_fini(&op);
	}
	free(chain);
}

static void test_lower_matrix(void **state)
{
	struct chain *chain =
	    chain_of("convolve=kernel=1 2 1;2 4 2;1 2 1,convolve=kernel=0 1 0;1 -4 1;0 1 0,"
	             "convolve=kernel=3 0 -3:scale=2:offset=7,convolve=kernel=0 0 0");
	struct operation op;

	(void)state;
	assert_int_equal(filter_lower(&chain->call[0], chain->coefficient, &op), ERR_OK);
	assert_int_equal(op.kind, OPERATION_SEPARABLE);
	assert_true(op.smoothing && op.gain == 1);
	for (int j = 0; j < 3; j++)
		for (int i = 0; i < 3; i++)
			assert_true(fabs(op.coefficients[i] * op.coefficients[3 + j] -
			                 (i == 1 ? 2 : 1) * (j == 1 ? 2 : 1) / 16.0) < 1e-15);
	operation_fini(&op);
	assert_int_equal(filter_lower(&chain->call[1], chain->coefficient, &op), ERR_OK);
	assert_int_equal(op.kind, OPERATION_MATRIX);
	assert_true(!op.smoothing && op.coefficients[4] == -4 && op.gain == 8);
	operation_fini(&op);
	assert_int_equal(filter_lower(&chain->call[2], chain->coefficient, &op), ERR_OK);
	assert_int_equal(op.kind, OPERATION_MATRIX); /* one row is not worth splitting */
	assert_int_equal(op.radius_y, 0);
	assert_true(!op.smoothing && op.offset == 7 && op.gain == 3);
	assert_true(op.coefficients[0] == 1.5 && op.coefficients[2] == -1.5);
	operation_fini(&op);
	assert_int_equal(filter_lower(&chain->call[3], chain->coefficient, &op), ERR_OK);
	assert_true(op.gain == 0 && op.coefficients[0] == 0);
	operation_fini(&op);
	free(chain);
}

/* The named 3x3 filters: what they do to a constant, and how they are stored. */
static void test_lower_named(void **state)
{
	struct chain *chain = chain_of("scharr,prewitt=output=x,laplacian,laplacian=connectivity=8,"
	                               "emboss,sharpen=amount=2");
	static const double sum[] = {16, 3, 0, 0, 1, 1};
	struct operation op;

	(void)state;
	for (int i = 0; i < 6; i++) {
		assert_int_equal(filter_lower(&chain->call[i], chain->coefficient, &op), ERR_OK);
		assert_int_equal(op.kind, i < 2 ? OPERATION_GRADIENT : OPERATION_MATRIX);
		assert_true(fabs(coefficient_sum(&op, 0, i < 2 ? 3 : 9) - sum[i]) < 1e-12);
		assert_true(op.signed_output == (i >= 1 && i <= 3));
		assert_true(op.smoothing == (i == 5));
		operation_fini(&op);
	}
	free(chain);
}

static void test_border_value(void **state)
{
	struct image rgba = {10, 10, 4, PIXEL_U8, 1}, grey = {10, 10, 1, PIXEL_U16, 0};
	struct chain *chain = chain_of("box");
	double pixel[BANDS_MAX];

	(void)state;
	assert_int_equal(chain_border_pixel(chain, &rgba, pixel, &problem), ERR_OK);
	assert_true(pixel[0] == 0 && pixel[3] == 255);
	assert_int_equal(chain_set_border_value(chain, "9", &problem), ERR_OK);
	assert_int_equal(chain_border_pixel(chain, &rgba, pixel, &problem), ERR_OK);
	assert_true(pixel[2] == 9 && pixel[3] == 255);
	assert_int_equal(chain_set_border_value(chain, "1,2,3", &problem), ERR_OK);
	assert_int_equal(chain_border_pixel(chain, &rgba, pixel, &problem), ERR_OK);
	assert_true(pixel[2] == 3 && pixel[3] == 255);
	assert_int_equal(chain_border_pixel(chain, &grey, pixel, &problem), ERR_BAD_PARAMETER);
	assert_int_equal(chain_set_border_value(chain, "1,2,3,4", &problem), ERR_OK);
	assert_int_equal(chain_border_pixel(chain, &rgba, pixel, &problem), ERR_OK);
	assert_true(pixel[3] == 4);
	assert_int_equal(chain_set_border_value(chain, "1,2,3,4,5", &problem), ERR_BAD_PARAMETER);
	assert_int_equal(chain_set_border_value(chain, "70000", &problem), ERR_OK);
	assert_int_equal(chain_border_pixel(chain, &grey, pixel, &problem), ERR_BAD_PARAMETER);
	assert_int_equal(chain_set_border_value(chain, "x", &problem), ERR_BAD_PARAMETER);
	free(chain);
}

static void test_area(void **state)
{
	static const char *const bad[] = {"",          "1,2,3",        "1,2,0,4", "1,2,3,0",
	                                  "1,2,3,4,",  "-1,2,3,4",     "1,2,3,x", "1, 2,3,4",
	                                  "1.5,2,3,4", "0,0,1000001,1"};
	const struct image image = {100, 50, 1, PIXEL_U8, 0};
	struct area area;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(area_parse(bad[i], &area));
	assert_true(area_parse("99,49,1,1", &area));
	assert_true(area_inside(&area, &image));
	assert_true(area_parse("0,0,100,50", &area));
	assert_true(area_inside(&area, &image));
	assert_true(area_parse("1,0,100,50", &area) && !area_inside(&area, &image));
	assert_true(area_parse("0,1,100,50", &area) && !area_inside(&area, &image));
	assert_true(area_parse("0,0,101,1", &area) && !area_inside(&area, &image));
	area = (struct area){UINT32_MAX, UINT32_MAX, 2, 2};
	assert_false(area_inside(&area, &image));
}

static void test_channels(void **state)
{
	static const struct {
		struct image image;
		bool cmyk;
		const char *fitting; /* names with spaces around */
	} rows[] = {
	    {{5, 5, 1, PIXEL_U8, 0}, false, " all color red "},
	    {{5, 5, 2, PIXEL_F32, 1}, false, " all color red alpha "},
	    {{5, 5, 3, PIXEL_U16, 0}, false, " all color red green blue luma chroma "},
	    {{5, 5, 4, PIXEL_U8, 1}, false, " all color red green blue luma chroma alpha "},
	    {{5, 5, 4, PIXEL_U8, 0}, true, " all color "},
	};
	struct chain *chain = chain_of("box,sobel");
	char name[16];

	(void)state;
	assert_int_equal(channels_parse("colour"), CHANNELS);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (enum channels c = 0; c < CHANNELS; c++) {
			enum error e;

			assert_int_equal(channels_parse(channels_name(c)), c);
			chain->call[1].channels = c;
			e = chain_check_image(chain, &rows[i].image, rows[i].cmyk, &problem);
			snprintf(name, sizeof name, " %s ", channels_name(c));
			assert_int_equal(e, strstr(rows[i].fitting, name) ? ERR_OK
			                                                  : ERR_BAD_PARAMETER);
			if (e)
				assert_string_equal(problem.value, channels_name(c));
		}
	free(chain);
}

static void test_luma_and_chroma(void **state)
{
	struct chain *chain = chain_of("box=size=3");
	uint32_t x, y;

	(void)state;
	chain_set_channels(chain, CHANNELS_RED);
	assert_int_equal(
	    chain_parse_for(chain, CHANNELS_LUMA, "luma", "gaussian=size=5,sobel", &problem),
	    ERR_OK);
	assert_int_equal(chain_parse_for(chain, CHANNELS_CHROMA, "chroma", "box=size=9", &problem),
	                 ERR_OK);
	assert_int_equal(chain->count, 4);
	assert_int_equal(chain->call[0].channels, CHANNELS_RED);
	assert_int_equal(chain->call[2].channels, CHANNELS_LUMA);
	assert_int_equal(chain->call[3].channels, CHANNELS_CHROMA);
	assert_true(chain_valid(chain));
	chain_halo(chain, &x, &y);
	assert_int_equal(x, 1 + 2 + 1 + 4);
	assert_int_equal(chain_parse_for(chain, CHANNELS_LUMA, "luma", "", &problem),
	                 ERR_BAD_PARAMETER);
	assert_string_equal(problem.parameter, "luma");
	assert_int_equal(chain_parse_for(chain, CHANNELS_LUMA, "luma", "box=3", &problem),
	                 ERR_BAD_PARAMETER);
	assert_string_equal(problem.parameter, "luma");
	free(chain);
}

static void test_variant(void **state)
{
	static const struct {
		const char *filters, *variant;
		const char *detail; /* of the refusal; NULL: there is none */
	} rows[] = {
	    {"gaussian", "separable", NULL},
	    {"gaussian", "matrix", NULL},
	    {"sobel,gaussian", "separable", NULL},
	    {"sobel", "reference", NULL},
	    {"bilateral", "reference", NULL},
	    {"gaussian", "matrx", "for gaussian: separable, "},
	    {"sobel,gaussian", "none", "for sobel: gradient"},
	    {"gaussian", "extend", "for gaussian"},
	    {"gaussian", "gradient", "it does sobel, scharr, prewitt"},
	    {"sobel,emboss", "separable", "it does gaussian, box, convolve"},
	    {"gaussian=sigma=11", "matrix", "radius up to 31; that of gaussian is 33"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chain *chain = chain_of(rows[i].filters);
		enum error e = chain_set_variant(chain, rows[i].variant, &problem);

		assert_int_equal(e, rows[i].detail ? ERR_BAD_PARAMETER : ERR_OK);
		if (e) {
			assert_non_null(strstr(problem.detail, rows[i].detail));
			assert_string_equal(problem.parameter, "variant");
			assert_string_equal(problem.value, rows[i].variant);
		} else {
			assert_true(chain_valid(chain));
		}
		free(chain);
	}
}

/* Every tile of an image lies in its arenas, in a slot of its own, and the tiles cover the result.
 */
static void check_tiling(const struct chain *chain, const struct image *image, uint64_t arena)
{
	struct tiling t;
	struct tile tile;
	uint32_t row = 0;

	if (tiling_init(&t, chain, image, arena, arena, 1 << 20, &problem)) {
		assert_non_null(strstr(problem.detail, "largest width"));
		return;
	}
	assert_true(t.slots >= SLOTS_MIN || t.slots == t.count);
	assert_true(t.slots * t.in_slot <= arena && t.slots * t.out_slot <= arena);
	for (uint32_t i = 0; i < t.count; i++) {
		tiling_tile(&t, i, 5, 6, &tile);
		assert_true(tile_valid(&tile, image, chain, arena, arena));
		assert_int_equal(tile.y0, t.y0 + row);
		row += tile.height;
		tile.in += arena - t.in_slot * t.slots + 4096;
		assert_false(tile_valid(&tile, image, chain, arena, arena) &&
		             i % t.slots == t.slots - 1 && tile.height == t.rows);
	}
	assert_int_equal(row, t.height);
}

static void test_tiling(void **state)
{
	static const uint32_t widths[] = {1, 2, 63, 64, 65, 1000, 20000};
	static const uint32_t heights[] = {1, 2, 17, 500, 20000};
	static const uint64_t arenas[] = {1 << 16, 1 << 20, 1 << 26};
	struct chain *chains[] = {chain_of("box=size=1"), chain_of("gaussian=sigma=10"),
	                          chain_of("convolve=kernel=1 1 1 1 1,sobel")};

	(void)state;
	for (size_t c = 0; c < 3; c++)
		for (uint32_t w = 0; w < 7; w++)
			for (uint32_t h = 0; h < 5; h++)
				for (uint32_t type = 0; type < PIXEL_TYPES; type++)
					for (size_t a = 0; a < 3; a++) {
						struct image image = {widths[w], heights[h], 3,
						                      type, 0};

						check_tiling(chains[c], &image, arenas[a]);
					}
	for (size_t c = 0; c < 3; c++)
		free(chains[c]);
}

static void test_tiling_crop(void **state)
{
	struct chain *chain = chain_of("box=size=5,sobel");
	struct image image = {7, 8, 1, PIXEL_U8, 0};
	struct tiling t;

	(void)state;
	assert_int_equal(chain_set_border(chain, "crop", &problem), ERR_OK);
	assert_int_equal(tiling_init(&t, chain, &image, 1 << 20, 1 << 20, 1 << 20, &problem),
	                 ERR_OK);
	assert_int_equal(t.width, 1);
	assert_int_equal(t.height, 2);
	assert_int_equal(t.x0, 3);
	image.width = 6;
	assert_int_equal(tiling_init(&t, chain, &image, 1 << 20, 1 << 20, 1 << 20, &problem),
	                 ERR_IMAGE_TOO_SMALL);
	free(chain);
}

/* The width that a refusal names fits, and one more does not. */
static void test_tiling_largest_width(void **state)
{
	struct chain *chain = chain_of("gaussian=sigma=20");
	struct image image = {900000, 10, 3, PIXEL_U8, 0};
	struct tiling t;
	const char *at;

	(void)state;
	assert_int_equal(tiling_init(&t, chain, &image, 1 << 22, 1 << 22, 1 << 20, &problem),
	                 ERR_DOES_NOT_FIT);
	at = strstr(problem.detail, "largest width is ");
	assert_non_null(at);
	image.width = (uint32_t)atoi(at + 17);
	assert_int_equal(tiling_init(&t, chain, &image, 1 << 22, 1 << 22, 1 << 20, &problem),
	                 ERR_OK);
	image.width++;
	assert_int_equal(tiling_init(&t, chain, &image, 1 << 22, 1 << 22, 1 << 20, &problem),
	                 ERR_DOES_NOT_FIT);
	free(chain);
}

static void test_tile_hostile(void **state)
{
	struct chain *chain = chain_of("box");
	struct image image = {100, 100, 1, PIXEL_U8, 0};
	struct tiling t;
	struct tile good, bad;

	(void)state;
	assert_int_equal(tiling_init(&t, chain, &image, 1 << 16, 1 << 16, 1 << 20, &problem),
	                 ERR_OK);
	tiling_tile(&t, 0, 1, 0, &good);
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
#undef BAD
	free(chain);
}

static void test_image_parse(void **state)
{
	static const char *const bad[] = {"",          "640x480",        "640x480x3",  "0x1x1:u8",
	                                  "1x1x5:u8",  "1x1x0:u8",       "1x1x1:u9",   "1x1x1:u8 ",
	                                  "-1x1x1:u8", "1000001x1x1:u8", "1x1x1:f322", " 1x1x1:u8"};
	struct image image;

	(void)state;
	assert_true(image_parse("640x480x3:u16", &image));
	assert_int_equal(image.width, 640);
	assert_int_equal(image.type, PIXEL_U16);
	assert_int_equal(image_size(&image), 640 * 480 * 6);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(image_parse(bad[i], &image));
}

static void test_wire(void **state)
{
	struct message out = {.type = MSG_PLAN, .plan = {.job = 7}}, in;
	int pair[2], fds[MESSAGE_FDS_MAX], extra;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_NOTHING);
	assert_int_equal(wire_send(pair[0], &out, (int[]){pair[0]}), ERR_OK);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_MESSAGE);
	assert_int_equal(in.type, MSG_PLAN);
	assert_int_equal(in.plan.job, 7);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	close(fds[0]);
	extra = dup(0); /* the lowest free descriptor, to see that none leaks below */
	close(extra);
	assert_int_equal(send(pair[0], &out, 5, 0), 5);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_BROKEN);
	out.type = 99;
	assert_true(send(pair[0], &out, 24, 0) == 24);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_BROKEN);
	assert_int_equal(dup(0), extra);
	close(extra);
	close(pair[0]);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_CLOSED);
	close(pair[1]);
}

static void test_memory(void **state)
{
	int fd, read_only;
	char buffer[6];

	(void)state;
	assert_int_equal(arena_create("test", 8192, &fd), ERR_OK);
	assert_int_not_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(arena_reopen_read_only(fd, &read_only), ERR_OK);
	assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, read_only, 0), MAP_FAILED);
	close(fd);
	close(read_only);
	assert_int_equal(sealed_create("test", "hello", 6, &fd), ERR_OK);
	assert_true(pwrite(fd, "x", 1, 0) < 0);
	assert_int_equal(sealed_read(fd, buffer, 6), ERR_OK);
	assert_string_equal(buffer, "hello");
	assert_int_equal(sealed_read(fd, buffer, 5), ERR_IO);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_border_map),
	    cmocka_unit_test(test_parse_valid),
	    cmocka_unit_test(test_parse_invalid),
	    cmocka_unit_test(test_matrix_limits),
	    cmocka_unit_test(test_lower_gaussian),
	    cmocka_unit_test(test_lower_matrix),
	    cmocka_unit_test(test_border_value),
	    cmocka_unit_test(test_tiling),
	    cmocka_unit_test(test_tiling_crop),
	    cmocka_unit_test(test_tiling_largest_width),
	    cmocka_unit_test(test_tile_hostile),
	    cmocka_unit_test(test_image_parse),
	    cmocka_unit_test(test_wire),
	    cmocka_unit_test(test_lower_named),
	    cmocka_unit_test(test_chain_hostile),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_area),
	    cmocka_unit_test(test_channels),
	    cmocka_unit_test(test_luma_and_chroma),
	    cmocka_unit_test(test_variant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
