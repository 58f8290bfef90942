/* The programs' common library: parsers, halo and tile arithmetic, border mapping, messages. */
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
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memfd.h"
#include "base/text.h"
#include "base/value.h"
#include "border.h"
#include "element.h"
#include "filters/chain.h"
#include "filters/chain_check.h"
#include "image/formats.h"
#include "link/head.h"
#include "process/stall.h"
#include "reference/reference.h"
#include "wire/tile.h"
#include "wire/wire.h"

static struct problem problem;

/* Returns a chain of one filter with parameters "key=value:key=value". */
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

/* A text is a value or not, a value is printed as it is read, and what is valid is said. */
static void test_values(void **state)
{
	static const struct value_kind number = {VALUE_NUMBER, 0.1, 100, "pixels"},
	                               integer = {VALUE_INTEGER, 0, 300, NULL},
	                               odd = {VALUE_ODD, 1, 601, ""},
	                               bytes = {VALUE_BYTES, 1, 1099511627776.0, NULL},
	                               words = {VALUE_WORD, .unit = "auto|on|off"},
	                               two = {VALUE_WORD, .unit = "no|yes"};
	static const struct {
		const struct value_kind *kind;
		const char *text;
		double value; /* NAN: it is none */
	} cases[] = {
	    {&number, "0.1", 0.1},   {&number, "+1e2", 100},
	    {&number, "0.09", NAN},  {&number, "", NAN},
	    {&number, "nan", NAN},   {&number, "0x1", NAN},
	    {&number, " 1", NAN},    {&number, "1e999", NAN},
	    {&integer, "300", 300},  {&integer, "0", 0},
	    {&integer, "5.0", 5},    {&integer, "1.5", NAN},
	    {&integer, "+1", NAN},   {&integer, "-1", NAN},
	    {&integer, "301", NAN},  {&integer, "1x", NAN},
	    {&odd, "601", 601},      {&odd, "2", NAN},
	    {&odd, "3.5", NAN},      {&bytes, "1", 1},
	    {&bytes, "3K", 3072},    {&bytes, "1024G", 1099511627776.0},
	    {&bytes, "1025G", NAN},  {&bytes, "10X", NAN},
	    {&bytes, "1KB", NAN},    {&bytes, "K", NAN},
	    {&bytes, "0x1", NAN},    {&bytes, "1.5M", NAN},
	    {&words, "auto", 0},     {&words, "off", 2},
	    {&words, "o", NAN},      {&words, "", NAN},
	    {&words, "on|off", NAN}, {&two, "yes", 1},
	    {&two, "yes|", NAN},
	};
	static const struct {
		const struct value_kind *kind;
		const char *valid;
	} descriptions[] = {
	    {&number, "a number from 0.1 to 100, in pixels"},
	    {&integer, "an integer from 0 to 300"},
	    {&odd, "an odd integer from 1 to 601"},
	    {&bytes, "an integer number of bytes (suffix K, M or G) from 1 to 1024G"},
	    {&words, "one of auto, on, off"},
	    {&two, "no or yes"},
	};
	char text[128];
	double value, again;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(value_read(cases[i].kind, cases[i].text, &value),
		                 !isnan(cases[i].value));
		if (isnan(cases[i].value))
			continue;
		assert_true(value == cases[i].value);
		value_print(cases[i].kind, value, text, sizeof text);
		assert_true(value_read(cases[i].kind, text, &again) && again == value);
	}
	for (size_t i = 0; i < sizeof descriptions / sizeof *descriptions; i++) {
		value_describe(descriptions[i].kind, text, sizeof text);
		assert_string_equal(text, descriptions[i].valid);
	}
	assert_int_equal(value_parse(&odd, "size", "4", &value, &problem), ERR_BAD_PARAMETER);
	assert_string_equal(problem.parameter, "size");
	assert_string_equal(problem.value, "4");
	assert_string_equal(problem.detail, "size: expected an odd integer from 1 to 601");
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
	struct chain *chain = chain_of("gaussian=sigma=2.5,box=size=7,convolve=kernel=1 2 1;2 "
	                               "4.0000000000000000000000000000000000000000 2;1 2 1:"
	                               "offset=3,sobel=output=y");
	uint32_t x, y;

	(void)state;
	assert_int_equal(chain->count, 4);
	assert_true(chain->call[0].value[GAUSSIAN_SIGMA] == 2.5);
	assert_int_equal(chain->call[2].numbers[CONVOLVE_KERNEL].width, 3);
	assert_int_equal(chain->call[2].numbers[CONVOLVE_KERNEL].height, 3);
	assert_true(chain->coefficient[4] == 4);
	assert_true(chain->call[3].value[SOBEL_OUTPUT] == 2);
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
	    {"sobel,", ERR_BAD_PARAMETER, "filter", "without a name"},
	    {"gaussian=sigma=1,,sobel", ERR_BAD_PARAMETER, "filter", "without a name"},
	    {"=size=3", ERR_BAD_PARAMETER, "filter", "without a name"},
	    {"gausian", ERR_UNKNOWN_FILTER, "filter", "did you mean gaussian?"},
	    {"guassian", ERR_UNKNOWN_FILTER, "filter", "did you mean gaussian?"},
	    {"gauss", ERR_UNKNOWN_FILTER, "filter", "did you mean gaussian?"},
	    {"sharpn", ERR_UNKNOWN_FILTER, "filter", "did you mean sharpen?"},
	    {"hologram", ERR_UNKNOWN_FILTER, "filter", "the filters are gaussian, box, "},
	    {"a-name-that-is-longer-than-any-of-them-by-far", ERR_UNKNOWN_FILTER, "filter",
	     ", unsharp"},
	    {"sobl", ERR_UNKNOWN_FILTER, "filter", "sobel"},
	    {"gaussian=sigma=x", ERR_BAD_PARAMETER, "sigma", "number from 0.1 to 100"},
	    {"gaussian=sigma=nan", ERR_BAD_PARAMETER, "sigma", "number"},
	    {"gaussian=sigma=0x10", ERR_BAD_PARAMETER, "sigma", "number"},
	    {"gaussian=sigma=1e999", ERR_BAD_PARAMETER, "sigma", "number"},
	    {"gaussian=sigma=0", ERR_BAD_PARAMETER, "sigma", "0.1 to 100"},
	    {"unsharp=sigma=100.1", ERR_BAD_PARAMETER, "sigma",
	     "shorter side; instead, use pixelate, or a chain of several gaussians (the squares "
	     "of their sigmas add up)"},
	    {"gaussian=size=4", ERR_BAD_PARAMETER, "size", "expected an odd integer"},
	    {"box=size=603", ERR_BAD_PARAMETER, "size", "to 601"},
	    {"box=radius=3", ERR_BAD_PARAMETER, "radius", "box takes size"},
	    {"gaussian=3", ERR_BAD_PARAMETER, "filters", "key=value"},
	    {"sobel=output=z", ERR_BAD_PARAMETER, "output", "magnitude, x, y"},
	    {"convolve", ERR_BAD_PARAMETER, "kernel", "needs kernel"},
	    {"convolve=kernel=1 2;3 4", ERR_BAD_PARAMETER, "kernel", "2x2"},
	    {"convolve=kernel=1 2 1;2 4", ERR_BAD_PARAMETER, "kernel", "row 2"},
	    {"convolve=kernel=1;2;", ERR_BAD_PARAMETER, "kernel", "row 3"},
	    {"convolve=kernel=1 a 1", ERR_BAD_PARAMETER, "kernel", "row 1"},
	    {"convolve=kernel=1e38", ERR_BAD_PARAMETER, "kernel", "from -1e9 to 1e9"},
	    {"convolve=kernel=1:scale=0", ERR_BAD_PARAMETER, "scale", "other than 0"},
	    {"convolve=kernel=1 -2 1:scale=-1e-34", ERR_BAD_PARAMETER, "scale",
	     "least 4.65661e-09"},
	    {"convolve=kernel=1e9 -1e9 0", ERR_BAD_PARAMETER, "kernel", "most 8.58993e+08"},
	    {"convolve=kernel=1 -1 1e-320:scale=1e-320", ERR_BAD_PARAMETER, "scale", "least"},
	    {"linear=gain=1 101 1", ERR_BAD_PARAMETER, "gain", "from -100 to 100"},
	    {"linear=gain=1 x 1", ERR_BAD_PARAMETER, "gain", "row 1"},
	    {"linear=gain=1 1 1;2 2 2", ERR_BAD_PARAMETER, "gain", "one for each colour"},
	    {"linear=gain=1 1 1:bias=0 1", ERR_BAD_PARAMETER, "bias", "have as many"},
	    {"linear=bias=0 1 0 1 0", ERR_BAD_PARAMETER, "bias", "one for each colour"},
	    {"lut", ERR_BAD_PARAMETER, "table", "either a table"},
	    {"lut=table=0 1:points=0 0;1 1", ERR_BAD_PARAMETER, "points", "either a table"},
	    {"lut=table=7", ERR_BAD_PARAMETER, "table", "2 to 4096"},
	    {"lut=table=0 1;1 0;0 1;1 0;0 1", ERR_BAD_PARAMETER, "table", "2 to 4096"},
	    {"lut=table=0 256", ERR_BAD_PARAMETER, "table", "at most max"},
	    {"lut=table=0 -1", ERR_BAD_PARAMETER, "table", "from 0 to 65535"},
	    {"lut=points=0 0", ERR_BAD_PARAMETER, "points", "2 to 64 rows"},
	    {"lut=points=0 0 1 1", ERR_BAD_PARAMETER, "points", "2 to 64 rows"},
	    {"lut=points=0 0;9 1;9 2", ERR_BAD_PARAMETER, "points", "that rise"},
	    {"lut=points=0 0;0.5 2:max=1", ERR_BAD_PARAMETER, "points", "nothing above max"},
	    {"colormatrix", ERR_BAD_PARAMETER, "matrix", "3 rows of 4"},
	    {"colormatrix=matrix=1 0 0;0 1 0;0 0 1", ERR_BAD_PARAMETER, "matrix", "3 rows of 4"},
	    {"colormatrix=matrix=1 0 0 11;0 1 0 0;0 0 1 0", ERR_BAD_PARAMETER, "matrix",
	     "from -10 to 10"},
	    {"grayscale=weights=red", ERR_BAD_PARAMETER, "weights", "one of bt601, bt709, mean"},
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

/* Messages that a process that has been taken over might send. */
static void test_chain_hostile(void **state)
{
	struct chain *chain = chain_of("sobel,convolve=kernel=1,box");

	(void)state;
#define BAD(field, value, good)                                                                    \
	chain->field = value;                                                                      \
	assert_false(chain_valid(chain));                                                          \
	chain->field = good;                                                                       \
	assert_true(chain_valid(chain))
	BAD(call[1].value[CONVOLVE_SCALE], 1e-10, 1);
	BAD(count, 0, 3);
	BAD(count, CHAIN_FILTERS_MAX + 1, 3);
	BAD(border, BORDERS, 0);
	BAD(border_values, BANDS_MAX + 1, 0);
	BAD(call[0].filter, FILTERS, FILTER_SOBEL);
	BAD(call[0].value[SOBEL_OUTPUT], NAN, 0);
	BAD(call[0].value[SOBEL_OUTPUT], 4, 0);
	BAD(call[0].channels, CHANNELS, CHANNELS_ALL);
	BAD(variant, KERNEL_EXTEND + 1, VARIANT_REFERENCE);
	BAD(variant, VARIANT_GENERAL + 1, KERNEL_MATRIX + 1);
	BAD(call[1].value[CONVOLVE_SCALE], 0, NAN);
	BAD(call[1].numbers[CONVOLVE_KERNEL].width, 2, 1);
	BAD(call[1].numbers[CONVOLVE_KERNEL].height, 65, 1);
	BAD(call[1].numbers[CONVOLVE_KERNEL].first, CHAIN_COEFFICIENTS_MAX, 0);
	BAD(call[2].value[BOX_SIZE], NAN, 3);
	BAD(regions.first, CHAIN_COEFFICIENTS_MAX + 1, 0);
	assert_int_equal(chain_set_regions(chain, "1,2,3,4", &(struct problem){0}), ERR_OK);
	assert_true(chain_valid(chain));
	BAD(regions.count, REGIONS_MAX + 1, 1);
	BAD(regions.count, UINT32_MAX, 1);
	BAD(regions.first, CHAIN_COEFFICIENTS_MAX - REGION_NUMBERS + 1, 1);
	BAD(regions.invert, 2, 1);
	BAD(regions.feather, REGIONS_FEATHER_MAX + 1, 0);
	for (int i = 0; i < REGION_NUMBERS; i++) {
		BAD(coefficient[1 + i], NAN, 1);
		BAD(coefficient[1 + i], 1e9, 1);
		BAD(coefficient[1 + i], 0.5, 1);
	}
	BAD(coefficient[1 + REGION_HEIGHT], 0, 4);
	free(chain);
	chain =
	    chain_of("lut=points=0 0;90 200,linear=gain=1 2 3,colormatrix=matrix=1 0 0 0;0 1 0 0;0 "
	             "0 1 0");
	assert_true(chain_valid(chain));
	BAD(call[0].numbers[LUT_POINTS].width, 3, 2);
	BAD(call[0].numbers[LUT_POINTS].height, LUT_POINTS_MAX + 1, 2);
	BAD(call[0].numbers[LUT_POINTS].height, 0, 2);
	BAD(call[0].numbers[LUT_POINTS].first, UINT32_MAX, 0);
	BAD(call[0].numbers[LUT_TABLE].width, UINT32_MAX, 0);
	BAD(call[0].value[LUT_MAX], 100, 255);
	BAD(call[0].value[LUT_MAX], NAN, 255);
	BAD(coefficient[2], 0, 90);
	BAD(coefficient[3], NAN, 200);
	BAD(call[1].numbers[LINEAR_GAIN].height, 2, 1);
	BAD(call[1].numbers[LINEAR_BIAS].width, 65536, 0);
	BAD(coefficient[4], INFINITY, 1);
	BAD(call[2].numbers[COLORMATRIX_MATRIX].width, 5, 4);
	BAD(call[2].numbers[COLORMATRIX_MATRIX].height, 0, 3);
	BAD(coefficient[7], 11, 1);
#undef BAD
	free(chain);
}

static void test_regions(void **state)
{
	static const char *const bad[] = {"",
	                                  "1",
	                                  "1,2,3",
	                                  "1,2,3,4;",
	                                  ";1,2,3,4",
	                                  "1,2,3,4,5",
	                                  "1,2,-3,4",
	                                  "1,2,0,4",
	                                  "ellipse:",
	                                  "ellipse",
	                                  "1 ,2,3,4",
	                                  "1,2,3,4ellipse:1,2,3,4",
	                                  "1e3,2,3,4",
	                                  "--1,2,3,4",
	                                  "1,2,3,4\n",
	                                  "99999999,1,1,1",
	                                  "999999999999,1,1,1"};
	const struct area beside = {0, 0, 5, 7}, touched = {0, 0, 6, 8}, far = {40, 0, 5, 5};
	struct chain *chain = chain_of("box");
	const double *shapes;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(chain_set_regions(chain, bad[i], &problem), ERR_BAD_PARAMETER);
	assert_true(regions_weight(&chain->regions, chain_shapes(chain), 3, 4) == 1);
	chain->regions.invert = 1;
	assert_int_equal(chain_check(chain, &problem), ERR_BAD_PARAMETER);
	chain->regions.invert = 0;
	assert_int_equal(chain_set_regions(chain, "10,12,3,2;ellipse:20,-3,5,9", &problem), ERR_OK);
	assert_int_equal(chain_check(chain, &problem), ERR_OK);
	regions_move(&chain->regions, &chain->coefficient[chain->regions.first], -4, -4);
	shapes = chain_shapes(chain);
	chain->regions.feather = 1;
	assert_true(regions_weight(&chain->regions, shapes, 6, 8) == 1);
	assert_true(regions_weight(&chain->regions, shapes, 8, 9) == 1);
	assert_true(regions_weight(&chain->regions, shapes, 5, 8) == 0.5);
	assert_true(fabs(regions_weight(&chain->regions, shapes, 9, 10) - (1 - sqrt(0.5))) < 1e-12);
	assert_true(regions_weight(&chain->regions, shapes, 4, 8) == 0);
	assert_true(regions_weight(&chain->regions, shapes, 18, -7) == 1);
	assert_true(regions_weight(&chain->regions, shapes, 16, -3) == 1);
	assert_true(regions_weight(&chain->regions, shapes, 16, -7) < 0.5);
	assert_false(regions_touch(&chain->regions, shapes, &beside));
	assert_true(regions_touch(&chain->regions, shapes, &touched));
	chain->regions.invert = 1;
	assert_true(regions_touch(&chain->regions, shapes, &far));
	assert_true(regions_weight(&chain->regions, shapes, 5, 8) == 0.5);
	assert_true(regions_weight(&chain->regions, shapes, 6, 8) == 0);
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

/* Numbers for each colour, and what mixes colours, fit some images and channels. */
static void test_by_colour(void **state)
{
	static const struct {
		const char *chain, *fitting; /* grey, two colours, RGB, RGBA, CMYK */
	} rows[] = {
	    {"linear=gain=1 2 3", "..yy."},
	    {"linear=gain=1 2 3 4", "....y"},
	    {"linear=gain=2", "yyyyy"},
	    {"lut=table=0 1;1 0", ".y..."},
	    {"lut=table=0 1", "yyyyy"},
	    {"grayscale", "y.yy."},
	    {"colormatrix=matrix=1 0 0 0;0 1 0 0;0 0 1 0", "..yy."},
	};
	static const struct image images[] = {{5, 5, 1, PIXEL_U8, 0},
	                                      {5, 5, 2, PIXEL_U8, 0},
	                                      {5, 5, 3, PIXEL_U8, 0},
	                                      {5, 5, 4, PIXEL_U8, 1},
	                                      {5, 5, 4, PIXEL_U8, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chain *chain = chain_of(rows[i].chain);
		const bool alike = strlen(strchr(rows[i].fitting, 'y')) == 5 && i != 5;

		for (size_t k = 0; k < 5; k++)
			assert_int_equal(chain_check_image(chain, &images[k], k == 4, &problem),
			                 rows[i].fitting[k] == 'y' ? ERR_OK : ERR_BAD_PARAMETER);
		for (enum channels c = 0; c < CHANNELS; c++) {
			const bool any =
			    c != CHANNELS_ALPHA && c != CHANNELS_LUMA && c != CHANNELS_CHROMA;

			chain->call[0].channels = c;
			assert_int_equal(chain_check(chain, &problem),
			                 alike || any ? ERR_OK : ERR_BAD_PARAMETER);
			assert_true(chain_valid(chain) == (alike || any));
		}
		free(chain);
	}
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
		const char *detail; /* words of the refusal; NULL: there is none */
	} rows[] = {
	    {"gaussian", "separable", NULL},
	    {"gaussian", "matrix", NULL},
	    {"sobel,gaussian", "separable", NULL},
	    {"sobel", "reference", NULL},
	    {"bilateral", "reference", NULL},
	    {"unsharp", "separable", NULL},
	    {"dog", "dog", NULL},
	    {"dog", "separable", "it supports gaussian, box, convolve, unsharp"},
	    {"close", "extreme", NULL},
	    {"open=size=101", "extreme", NULL},
	    {"threshold", "threshold", NULL},
	    {"threshold=method=mean", "separable", NULL},
	    {"threshold=method=mean", "threshold_local_wide", NULL},
	    {"threshold=method=mean", "unsharp_wide", "it supports unsharp"},
	    {"threshold", "threshold_local_wide", "expected general, reference, threshold, "},
	    {"unsharp", "unsharp_wide", NULL},
	    {"threshold", "separable",
	     "separable does not support threshold with these values, expected general, "},
	    {"gaussian", "matrx", "for gaussian, expected general, reference, separable, "},
	    {"sobel,gaussian", "none", "for sobel, expected general, reference, gradient"},
	    {"gaussian", "extend", "for gaussian"},
	    {"gaussian", "gradient", "it supports sobel, scharr, prewitt"},
	    {"sobel,emboss", "separable", "it supports gaussian, box, convolve, unsharp"},
	    {"gaussian=sigma=11", "separable_wide", NULL}, /* on a lattice */
	    {"gaussian=sigma=11:size=67", "matrix", "radius up to 31; that of gaussian is 33"},
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

			tiling_tile(&t, i, 0, 0, &tile);
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

/* Every tile of an image lies in its arenas, in a slot of its own, and the tiles cover the result.
 */
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
		tiling_tile(&t, i, 5, 6, &tile);
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

static void test_tiling(void **state)
{
	static const uint32_t widths[] = {1, 2, 63, 64, 65, 1000, 20000, 300000};
	static const uint32_t heights[] = {1, 2, 17, 500, 20000};
	static const uint64_t arenas[] = {1 << 16, 1 << 20, 1 << 26};
	static const uint64_t most[] = {1, 1 << 16, 1 << 20}; /* samples of a tile */
	struct chain *chains[] = {chain_of("box=size=1"), chain_of("gaussian=sigma=10"),
	                          chain_of("convolve=kernel=1 1 1 1 1"),
	                          chain_of("convolve=kernel=1 1 1 1 1,sobel")};

	(void)state;
	for (size_t c = 0; c < 4; c++)
		for (uint32_t w = 0; w < 8; w++)
			for (uint32_t h = 0; h < 5; h++)
				for (uint32_t type = 0; type < PIXEL_TYPES; type++)
					for (size_t a = 0; a < 3; a++) {
						struct image image = {widths[w], heights[h], 3,
						                      type, 0};

						check_tiling(chains[c], &image, arenas[a], most[a]);
						check_tiling(chains[c], &image, arenas[a], most[2]);
					}
	for (size_t c = 0; c < 4; c++)
		free(chains[c]);
}

/* The tiles of all planes of a strip come before the next strip, each in a place of its own. */
static void test_tiling_planes(void **state)
{
	struct chain *chain = chain_of("gaussian=sigma=3");
	struct image image = {300, 2000, 21, PIXEL_U16, 0}, plane = image_plane(&image);
	const uint64_t arena = 1 << 22;
	struct tile tile, first;
	struct tiling t;

	(void)state;
	assert_int_equal(tiling_init(&t, chain, &image, arena, arena, 1 << 20, &problem), ERR_OK);
	assert_int_equal(t.planes, 21);
	assert_int_equal(t.strip_tiles, 21 * t.columns);
	assert_int_equal(t.count, t.strips * t.strip_tiles);
	assert_true(t.strips > SLOTS_MIN && t.slots >= SLOTS_MIN &&
	            t.slots * t.strip_tiles <= SLOTS_MAX);
	assert_true(t.slots * t.in_slot <= arena && t.slots * t.out_slot <= arena);
	for (uint32_t i = 0; i < t.count; i++) {
		const uint32_t p = i % t.strip_tiles / t.columns;

		tiling_tile(&t, i, 5, 6, &tile);
		tiling_tile(&t, i - p * t.columns, 5, 6, &first);
		assert_true(tile_valid(&tile, &plane, chain, arena, arena));
		assert_int_equal(tile.y0, i / t.strip_tiles * t.rows);
		assert_int_equal(tile.in, first.in + p * t.in_plane);
		assert_int_equal(tile.out, first.out + p * t.out_plane);
		assert_true(t.in_plane >= (tile.height + 2 * (uint64_t)t.halo_y) * t.in_pitch &&
		            t.out_plane >= (uint64_t)tile.height * t.out_pitch);
	}
	free(chain);
}

/* Every page is cut as if it were alone, and its strips follow those of the page before. */
static void test_tiling_pages(void **state)
{
	struct chain *chain = chain_of("gaussian=sigma=3");
	struct image image = {2000, 150, 3, PIXEL_U8, 0};
	const uint64_t arena = 1 << 22;
	struct tile tile, single;
	struct tiling one, t;

	(void)state;
	assert_int_equal(tiling_init(&one, chain, &image, arena, arena, 1 << 17, &problem), ERR_OK);
	t = one;
	tiling_set_pages(&t, 7);
	assert_true(one.strips > 1 && one.strips == one.page_strips && t.slots > one.slots);
	assert_int_equal(t.count, 7 * one.count);
	assert_int_equal(tiling_all_rows(&t), 7 * 150);
	for (uint32_t i = 0; i < t.count; i++) {
		tiling_tile(&t, i, 5, 6, &tile);
		tiling_tile(&one, i % one.count, 5, 6, &single);
		assert_true(tile_valid(&tile, &image, chain, arena, arena));
		assert_true(tile.x0 == single.x0 && tile.y0 == single.y0);
		assert_true(tile.width == single.width && tile.height == single.height);
	}
	for (uint32_t row = 0, strip = 0, within = 0; row < tiling_all_rows(&t); row++) {
		assert_int_equal(tiling_strip(&t, row), strip);
		assert_int_equal(tiling_row_in_strip(&t, row), within);
		if (++within == t.rows || (row + 1) % 150 == 0) {
			strip++;
			within = 0;
		}
	}
	assert_int_equal(tiling_strip(&t, tiling_all_rows(&t)), t.strips);
	free(chain);
}

/* The data that travels to a device and back is hardly more than the pixels and their halo. */
static void test_tiling_dense(void **state)
{
	struct chain *chain = chain_of("gaussian=size=5");
	struct image image = {4096, 4096, 1, PIXEL_U8, 0};
	uint64_t rows;
	struct tiling t;

	(void)state;
	assert_int_equal(tiling_init(&t, chain, &image, 1 << 26, 1 << 26, 1 << 20, &problem),
	                 ERR_OK);
	rows = t.rows + 4;
	assert_int_equal(t.out_slot, (uint64_t)t.rows * 4096);
	assert_in_range(t.in_slot, rows * 4100, rows * 4160 + ROW_ALIGNMENT);
	free(chain);
}

/* If a window is most of the arena, each row of the image is there once, until the strips begin
 * anew at the arena's start. */
static void test_tiling_shared(void **state)
{
	struct chain *chain = chain_of("gaussian=sigma=90");
	struct image image = {9000, 6000, 3, PIXEL_U8, 0};
	const uint64_t arena = 1 << 26;
	uint32_t anew = 0, columns;
	struct tile above, tile;
	struct tiling t;

	(void)state;
	assert_int_equal(tiling_init(&t, chain, &image, arena, arena, 1 << 20, &problem), ERR_OK);
	assert_true(t.shared && t.slots >= SLOTS_MIN);
	columns = t.columns;
	for (uint32_t strip = 0; strip < t.strips; strip++) {
		tiling_tile(&t, strip * columns, 5, 6, &tile);
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
	assert_int_equal(tiling_init(&t, chain, &image, arena, arena, 1 << 20, &problem), ERR_OK);
	assert_false(t.shared);
	free(chain);
}

static void test_tiling_crop(void **state)
{
	struct chain *chain = chain_of("box=size=5,sobel");
	struct image image = {7, 8, 1, PIXEL_U8, 0};
	struct tiling t;

	(void)state;
	chain->border = BORDER_CROP;
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

/* The sigma that a refusal names fits, in strips that are not hardly more than halo, and a larger
 * one does not. It is that of the Gaussian which reaches farthest. */
static void test_tiling_largest_sigma(void **state)
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

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chain *chain = chain_of(rows[i].filters);
		double *sigma = &chain->call[rows[i].call].value[GAUSSIAN_SIGMA];
		struct image image = {30000, 6000, rows[i].bands, PIXEL_U8, 0};
		const char *at;

		chain->border = rows[i].border;
		assert_int_equal(tiling_init(&t, chain, &image, arena, arena, 1 << 20, &problem),
		                 ERR_DOES_NOT_FIT);
		assert_non_null(strstr(problem.detail, "largest width is "));
		at = strstr(problem.detail, "largest sigma is ");
		assert_int_equal(at != NULL, rows[i].is_named);
		if (at) {
			*sigma = atof(at + 17);
			assert_int_equal(
			    tiling_init(&t, chain, &image, arena, arena, 1 << 20, &problem),
			    ERR_OK);
			*sigma += 0.1;
			assert_int_equal(
			    tiling_init(&t, chain, &image, arena, arena, 1 << 20, &problem),
			    ERR_DOES_NOT_FIT);
		}
		free(chain);
	}
}

/* Strips that would fit, but be hardly more than halo, are refused where a smaller sigma helps. */
static void test_tiling_mostly_halo(void **state)
{
	struct chain *chain = chain_of("gaussian=sigma=90"), *box = chain_of("box=size=601");
	struct image image = {20000, 6000, 3, PIXEL_U8, 0};
	const uint64_t arena = 1 << 26;
	struct tiling t;

	(void)state;
	assert_int_equal(tiling_init(&t, chain, &image, arena, arena, 1 << 20, &problem),
	                 ERR_DOES_NOT_FIT);
	assert_non_null(strstr(problem.detail, "largest sigma is "));
	image.width = (uint32_t)atoi(strstr(problem.detail, "largest width is ") + 17);
	assert_int_equal(tiling_init(&t, chain, &image, arena, arena, 1 << 20, &problem), ERR_OK);
	assert_true(2 * t.rows + 8 > t.halo_y);
	image.height = 200; /* all of it is in one strip */
	assert_int_equal(tiling_init(&t, chain, &image, arena, arena, 1 << 20, &problem), ERR_OK);
	image.width = 35000;
	image.height = 6000;
	assert_int_equal(tiling_init(&t, box, &image, arena, arena, 1 << 20, &problem), ERR_OK);
	assert_true(2 * t.rows < t.halo_y);
	free(chain);
	free(box);
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
	                                  "1x1x22:u8", "1x1x0:u8",       "1x1x1:u9",   "1x1x1:u8 ",
	                                  "-1x1x1:u8", "1000001x1x1:u8", "1x1x1:f322", " 1x1x1:u8"};
	struct image image;

	(void)state;
	assert_true(image_parse("640x480x3:u16", &image));
	assert_int_equal(image.width, 640);
	assert_int_equal(image.type, PIXEL_U16);
	assert_int_equal(image_size(&image), 640 * 480 * 6);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(image_parse(bad[i], &image));
	assert_true(image_parse("2x3x21:f32", &image));
	assert_int_equal(image_planes(&image), 21);
	assert_int_equal(image_plane(&image).bands, 1);
	image.alpha = 1;
	assert_false(image_valid(&image));
	image.bands = 4;
	assert_int_equal(image_planes(&image), 1);
	assert_int_equal(image_plane(&image).bands, 4);
}

static void test_wire(void **state)
{
	struct message out = {.type = MSG_PLAN, .plan = {.plan = 7}}, in;
	int pair[2], fds[MESSAGE_FDS_MAX], extra;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_NOTHING);
	assert_int_equal(wire_send(pair[0], &out, (int[]){pair[0]}), ERR_OK);
	assert_int_equal(wire_receive(pair[1], &in, fds), WIRE_MESSAGE);
	assert_int_equal(in.type, MSG_PLAN);
	assert_int_equal(in.plan.plan, 7);
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

/* A message with so many descriptors, whatever its type has. */
static void send_fds(int socket, const struct message *message, size_t size, unsigned count)
{
	union {
		char bytes[CMSG_SPACE(64 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)message, size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	header.msg_control = control.bytes;
	header.msg_controllen = CMSG_SPACE(count * sizeof(int));
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
	for (unsigned i = 0; i < count; i++)
		memcpy(CMSG_DATA(&control.align) + i * sizeof socket, &socket, sizeof socket);
	assert_true(sendmsg(socket, &header, 0) > 0);
}

/* Descriptors that come with a message beyond its type's are closed, and never written past the
 * caller's array. */
static void test_wire_descriptors(void **state)
{
	const struct message cancel = {.type = MSG_CANCEL}, job = {.type = MSG_JOB};
	struct message in;
	struct {
		int fds[MESSAGE_FDS_MAX], behind[64];
	} room;
	int pair[2], lowest;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	lowest = dup(0);
	close(lowest);
	memset(&room, 0xa5, sizeof room);
	for (unsigned count = 1; count <= 64; count++) {
		send_fds(pair[0], &cancel, 8 + sizeof cancel.cancel, count);
		assert_int_equal(wire_receive(pair[1], &in, room.fds), WIRE_BROKEN);
		if (count == message_fds(MSG_JOB))
			continue;
		send_fds(pair[0], &job, 8 + sizeof job.job, count);
		assert_int_equal(wire_receive(pair[1], &in, room.fds), WIRE_BROKEN);
	}
	for (size_t i = 0; i < 64; i++)
		assert_int_equal((unsigned)room.behind[i], 0xa5a5a5a5);
	assert_int_equal(dup(0), lowest);
	close(lowest);
	close(pair[0]);
	close(pair[1]);
}

enum child { SLEEPS, WORKS, STOPPED, TRACED };

static void child_run(enum child kind)
{
	if (kind == TRACED)
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	if (kind == TRACED || kind == STOPPED)
		raise(SIGSTOP);
	for (;;)
		if (kind != WORKS)
			pause();
}

/* Returns the verdict after ten looks at a child. */
static const char *looked_at(enum child kind, bool busy, uint64_t *worked)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	const char *word = NULL;
	pid_t pid = fork();
	struct stall stall;

	if (!pid)
		child_run(kind);
	nanosleep(&pause, NULL); /* until it is where it stays */
	stall_init(&stall, pid);
	for (int i = 0; i < 10; i++) {
		word = stall_look(&stall, busy);
		nanosleep(&pause, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	*worked = stall.worked_ns;
	return word;
}

static void test_stall(void **state)
{
	struct timespec begun, ended;
	uint64_t worked, most;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	assert_null(looked_at(WORKS, true, &worked));
	clock_gettime(CLOCK_MONOTONIC, &ended);
	most = (uint64_t)(ended.tv_sec - begun.tv_sec + 1) * 1000000000;
	assert_in_range(worked, 1000000, most);
	assert_null(looked_at(SLEEPS, false, &worked));
	assert_in_range(worked, 0, 50000000);
	assert_string_equal(looked_at(SLEEPS, true, &worked), "stuck");
	assert_string_equal(looked_at(STOPPED, true, &worked), "stopped");
	assert_string_equal(looked_at(STOPPED, false, &worked), "stopped");
	assert_null(looked_at(TRACED, false, &worked)); /* its debugger's business */
}

/* Between two looks nothing counts for more than the time that passed: of many threads, or of what
 * a process had used before it was looked at. */
static void test_worked(void **state)
{
	struct stall stall;
	uint64_t used;

	(void)state;
	stall_init(&stall, getpid());
	stall.looked_ns -= 1000000; /* 1 ms ago, in which this process used more */
	assert_null(stall_look(&stall, true));
	used = stall.used_ns;
	assert_true(used > stall.worked_ns);
	assert_in_range(stall.worked_ns, 1000000, used - 1);
	stall.looked_ns -= 3000000000;
	stall.worked_ns = 0;
	assert_null(stall_look(&stall, true));
	assert_int_equal(stall.worked_ns, stall.used_ns - used); /* not the 3 s that have passed */
}

static void test_memory(void **state)
{
	int fd, read_only;
	void *data;
	size_t size;

	(void)state;
	assert_int_equal(memfd_fixed("test", 8192, &fd), ERR_OK);
	assert_int_not_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(memfd_reopen(fd, O_RDONLY, &read_only), ERR_OK);
	assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, read_only, 0), MAP_FAILED);
	close(fd);
	close(read_only);
	assert_int_equal(memfd_sealed("test", "hello", 6, &fd), ERR_OK);
	assert_true(pwrite(fd, "x", 1, 0) < 0);
	assert_int_equal(memfd_take(fd, 1, 6, &data, &size), ERR_OK);
	assert_int_equal(size, 6);
	assert_string_equal(data, "hello");
	free(data);
	assert_int_equal(memfd_take(fd, 8, 8, &data, &size), ERR_OK);
	assert_int_equal(size, 6);
	assert_memory_equal(data, "hello\0\0\0", 8);
	free(data);
	assert_int_equal(memfd_take(fd, 1, 5, &data, &size), ERR_IO);
	assert_null(data);
	assert_false(file_write(fd, "x", 1, 0));
	close(fd);
}

static void test_file(void **state)
{
	int fd = memfd_create("test", 0);
	char buffer[8];

	(void)state;
	assert_true(file_write(fd, "hello", 5, 3));
	assert_true(file_read(fd, buffer, 8, 0));
	assert_memory_equal(buffer, "\0\0\0hello", 8);
	errno = 0;
	assert_false(file_read(fd, buffer, 6, 3));
	assert_int_equal(errno, EIO);
	assert_true(file_read(fd, buffer, 0, 9));
	close(fd);
}

static uint32_t random_below(uint32_t n)
{
	static uint64_t seed = 1;

	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % n);
}

/* Noise; of alpha a part is 0. */
static void *random_pixels(const struct image *image)
{
	size_t count = (size_t)image->width * image->height * image->bands;
	float *pixels = malloc(count * sizeof *pixels); /* room for any type */

	for (size_t i = 0; i < count; i++) {
		bool alpha = image->alpha && i % image->bands == image->bands - 1;
		double share = random_below(65536) / 65535.0;

		share = alpha && random_below(4) == 0 ? 0 : share;
		image_put_sample(pixels, i, image->type,
		                 image->type == PIXEL_F32
		                     ? share
		                     : floor(share * pixel_type_full_scale(image->type)));
	}
	return pixels;
}

/* Chains for the reference: each call may have its own channels. */
static struct chain *random_chain(const struct image *image)
{
	static const char *const links[] = {"gaussian=sigma=0.6",
	                                    "box=size=5",
	                                    "sobel",
	                                    "sobel=output=x",
	                                    "scharr=output=direction",
	                                    "laplacian",
	                                    "dog=sigma1=0.5:sigma2=0.8",
	                                    "erode=size=5:shape=ellipse",
	                                    "close",
	                                    "blackhat=shape=cross",
	                                    "morphgradient",
	                                    "pixelate=size=3",
	                                    "levels=black=0.1:white=0.9:gamma=2",
	                                    "linear=gain=-1.5:bias=1",
	                                    "lut=points=0 255;90 20;255 130",
	                                    "grayscale",
	                                    "colormatrix=matrix=1 1 0 0;-1 0 1 0.2;0 0.5 1 -0.5",
	                                    "threshold=value=0.4",
	                                    "threshold=method=gaussian:size=3",
	                                    "rank=radius=2:percentile=70:window=circle",
	                                    "sharpen=amount=2",
	                                    "unsharp=sigma=0.7:threshold=0.1",
	                                    "bilateral=radius=2:sigma_space=2",
	                                    "convolve=kernel=1 -2 3 4 -5:offset=3",
	                                    "convolve=kernel=1;2;5",
	                                    "convolve=kernel=0 1 2;3 -4 5;6 7 -9"};
	char text[256] = "";
	struct chain *chain;

	for (uint32_t n = 1 + random_below(3); n; n--) {
		strcat(text, *text ? "," : "");
		strcat(text, links[random_below(sizeof links / sizeof *links)]);
	}
	chain = chain_of(text);
	chain->border = random_below(BORDERS);
	if (image->type != PIXEL_F32 && random_below(2)) {
		chain->border_values = 1;
		chain->border_value[0] = random_below(256);
	}
	for (uint32_t i = 0; i < chain->count; i++)
		if (random_below(2))
			chain->call[i].channels = random_below(CHANNELS);
	return chain;
}

static struct image random_image(uint32_t least, uint32_t range)
{
	static const struct image kinds[] = {{.bands = 1},
	                                     {.bands = 2, .alpha = 1},
	                                     {.bands = 3},
	                                     {.bands = 4},
	                                     {.bands = 4, .alpha = 1}};
	struct image image = kinds[random_below(5)];

	image.type = random_below(PIXEL_TYPES);
	image.width = least + random_below(range);
	image.height = least + random_below(range);
	return image;
}

/* A window of the result from the padded image that reference_filter() would make, as a tile's
 * input area has it: no more than the window and its halo may be looked at. */
static void window_of(const struct chain *chain, const struct image *image, const uint8_t *pixels,
                      const struct window *w, struct reference *r)
{
	size_t pixel = image_pixel_size(image), width, height, pitch;
	uint32_t halo_x, halo_y;
	double outside[BANDS_MAX];
	uint8_t *area, *at;

	chain_halo(chain, &halo_x, &halo_y);
	width = w->width + 2 * halo_x;
	height = w->height + 2 * halo_y;
	pitch = width * pixel + 64;
	area = malloc(pitch * height);
	assert_int_equal(chain_border_pixel(chain, image, outside, &problem), ERR_OK);
	for (size_t i = 0; i < width * height; i++) {
		int x = (int)(w->x0 + i % width) - (int)halo_x;
		int y = (int)(w->y0 + i / width) - (int)halo_y;
		bool inside = x >= 0 && y >= 0 && x < (int)image->width && y < (int)image->height;

		at = area + i / width * pitch + i % width * pixel;
		if (!inside && chain->border == BORDER_CONSTANT) {
			for (uint32_t b = 0; b < image->bands; b++)
				image_put_sample(at, b, image->type, outside[b]);
			continue;
		}
		x = border_map(x, (int)image->width, (int)chain->border);
		y = border_map(y, (int)image->height, (int)chain->border);
		memcpy(at, pixels + ((size_t)y * image->width + (size_t)x) * pixel, pixel);
	}
	assert_int_equal(
	    reference_window(chain, image, w, area + halo_y * pitch + halo_x * pixel, pitch, r),
	    ERR_OK);
	free(area);
}

/* Any window equals the same part of the whole result, to the bit. */
static void test_reference_window(void **state)
{
	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct image image = random_image(1, 24);
		struct chain *chain = random_chain(&image);
		uint8_t *pixels = random_pixels(&image);
		struct reference whole, part;
		struct window w;
		size_t pixel = image_pixel_size(&image);

		if (reference_filter(chain, &image, pixels, &whole)) {
			assert_int_equal(chain->border, BORDER_CROP);
			goto next;
		}
		w.width = 1 + random_below(whole.window.width);
		w.height = 1 + random_below(whole.window.height);
		w.x0 = whole.window.x0 + random_below(whole.window.width - w.width + 1);
		w.y0 = whole.window.y0 + random_below(whole.window.height - w.height + 1);
		window_of(chain, &image, pixels, &w, &part);
		assert_int_equal(part.circular, whole.circular);
		for (uint32_t y = 0; y < w.height; y++) {
			size_t from = (size_t)(w.y0 - whole.window.y0 + y) * whole.window.width +
			              (w.x0 - whole.window.x0);

			assert_memory_equal((uint8_t *)part.pixels + y * w.width * pixel,
			                    (uint8_t *)whole.pixels + from * pixel,
			                    w.width * pixel);
		}
		reference_fini(&part);
		reference_fini(&whole);
	next:
		free(pixels);
		free(chain);
	}
}

/* A chain equals its filters in turn, also where an intermediate result is a count off (of a float:
 * a millionth): then the slack says how far the end may be off. */
static void test_reference_slack(void **state)
{
	uint64_t samples = 0, free_samples = 0;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct image image = random_image(12, 12);
		struct chain *chain = random_chain(&image), *one = malloc(sizeof *one);
		void *pixels = random_pixels(&image);
		struct difference d = {0};
		struct reference whole, step;

		/* Between calls on YCbCr nothing is rounded: they are no filters in turn. */
		for (uint32_t k = 0; k < chain->count; k++)
			if (chain->call[k].channels >= CHANNELS_LUMA && k)
				chain->call[k].channels = CHANNELS_ALL;
		chain->border = random_below(BORDER_CROP);
		assert_int_equal(reference_filter(chain, &image, pixels, &whole), ERR_OK);
		for (uint32_t k = 0; k < chain->count; k++) {
			size_t count = (size_t)image.width * image.height * image.bands;

			*one = *chain;
			one->count = 1;
			one->call[0] = chain->call[k];
			assert_int_equal(reference_filter(one, &image, pixels, &step), ERR_OK);
			memcpy(pixels, step.pixels, (size_t)image_size(&image));
			for (size_t n = 0; n < count; n++) {
				double v = image_get_sample(pixels, n, image.type);
				double full = pixel_type_full_scale(image.type);

				if (image.type == PIXEL_F32 && k + 1 < chain->count)
					v +=
					    (random_below(3) - 1.0) * fmin(step.slack[n] / 2, 1e-6);
				else if (image.type != PIXEL_F32 && k == 0 && step.slack[n] >= 1)
					v = fmin(full, fmax(0, v + (int)random_below(3) - 1));
				image_put_sample(pixels, n, image.type, v);
			}
			reference_fini(&step);
		}
		difference_add(&d, &whole, pixels, image_row_size(&image));
		if (d.mismatches)
			print_error("%s, %s, border %s: %u,%u band %u is %g, not %g +- %g\n",
			            filter_name(chain->call[0].filter),
			            chain->count > 1 ? filter_name(chain->call[1].filter) : "",
			            border_name(chain->border), d.x, d.y, d.band, d.got, d.wanted,
			            d.slack);
		assert_int_equal(d.mismatches, 0);
		for (size_t n = 0; n < d.samples; n++)
			free_samples += whole.slack[n] >= pixel_type_full_scale(image.type) / 4;
		samples += d.samples;
		reference_fini(&whole);
		free(pixels);
		free(one);
		free(chain);
	}
	/* If everything were allowed the rest would say nothing. */
	print_message("%.3f of the samples may be anything\n",
	              (double)free_samples / (double)samples);
}

/* Returns the sample that a window has at a place, perhaps outside the image, by the border
 * rule. */
static double sample_at(const struct image *image, const void *pixels, enum border border, int x,
                        int y, uint32_t band)
{
	const int width = (int)image->width, height = (int)image->height;
	const bool inside = x >= 0 && y >= 0 && x < width && y < height;

	if (border == BORDER_CONSTANT && !inside) /* opaque black */
		return image->alpha && band == image->bands - 1 ? pixel_type_full_scale(image->type)
		                                                : 0;
	x = border_map(x, width, (int)border);
	y = border_map(y, height, (int)border);
	return image_get_sample(
	    pixels, ((size_t)y * image->width + (size_t)x) * image->bands + band, image->type);
}

static int compare_ranked(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

/* Returns one sample by the definition of its operation. */
static double plain_sample(const struct operation *op, const struct image *image,
                           const void *pixels, enum border border, int x, int y, uint32_t band)
{
	static double values[101 * 101];
	const int rx = (int)op->radius_x, ry = (int)op->radius_y;
	const uint32_t colours = image->bands - image->alpha;
	const double *row = op->coefficients;
	const double *column = row + 2 * rx + 1, full = pixel_type_full_scale(image->type);
	double sum = 0, whole = 0;
	size_t count = 0;

	for (int j = -ry; j <= ry; j++)
		for (int i = -rx; i <= rx; i++) {
			const double v = sample_at(image, pixels, border, x + i, y + j, band);
			double w, a = 1, e2 = 0;

			if (op->kind == OPERATION_RANK || op->kind == OPERATION_EXTREME) {
				if (abs(i) <= element_half_width(j, ry, (int)op->element))
					values[count++] = v;
				continue;
			}
			if (image->alpha && band < colours)
				a = sample_at(image, pixels, border, x + i, y + j, colours);
			if (op->kind == OPERATION_BILATERAL) {
				if (i * i + j * j > rx * rx)
					continue;
				for (uint32_t b = 0; b < colours; b++)
					e2 +=
					    pow((sample_at(image, pixels, border, x + i, y + j, b) -
					         sample_at(image, pixels, border, x, y, b)) /
					            full,
					        2);
				w = exp(op->space * (i * i + j * j) + op->range * e2);
			} else if (op->kind == OPERATION_MATRIX) {
				w = op->coefficients[(j + ry) * (2 * rx + 1) + i + rx];
			} else {
				w = row[i + rx] * column[j + ry];
			}
			sum += w * a * v;
			whole += w * a;
		}
	if (count) {
		qsort(values, count, sizeof *values, compare_ranked);
		return op->kind == OPERATION_RANK ? values[op->rank]
		                                  : values[op->largest ? count - 1 : 0];
	}
	if (op->kind == OPERATION_BILATERAL || (image->alpha && band < colours))
		return whole <= 0 ? 0 : sum / whole; /* or NaN */
	return sum;
}

/* The reference's fast ways give what their definitions do: at all borders, of sizes below and
 * above those of its vectors, with alpha, and with what is no number. */
static void test_reference_plain(void **state)
{
	static const char *const links[] = {"gaussian=sigma=0.7",
	                                    "gaussian=size=13",
	                                    "box=size=5",
	                                    "box=size=31",
	                                    "box=size=61",
	                                    "convolve=kernel=1 2 3;4 0 6;7 8 10",
	                                    "convolve=kernel=1 2 4 0 3;2 4 8 0 6;3 6 12 0 9",
	                                    "median",
	                                    "rank=radius=15:percentile=70",
	                                    "rank=radius=3:window=circle",
	                                    "box=size=17",
	                                    "median=radius=4:window=circle",
	                                    "rank=radius=2:percentile=10",
	                                    "erode=size=9",
	                                    "dilate=size=7:shape=ellipse",
	                                    "dilate=size=17",
	                                    "erode=size=5:shape=cross",
	                                    "bilateral=radius=3:sigma_range=0.4"};
	static const float odd[] = {NAN, INFINITY, -INFINITY, -0.5f, 3};

	(void)state;
	for (unsigned n = 0; n < 510; n++) {
		struct chain *chain = chain_of(links[n % (sizeof links / sizeof *links)]);
		struct image image = random_image(1, n % 3 ? 12 : 70);
		uint8_t *pixels;
		struct reference r;
		struct operation op;

		if (n % 5 == 0)
			*(n % 2 ? &image.width : &image.height) = 1;
		pixels = random_pixels(&image);
		chain->border = random_below(BORDER_CROP);
		assert_int_equal(filter_lower(&chain->call[0], chain->coefficient, &op), ERR_OK);
		for (uint32_t i = 0; i < 5 && image.type == PIXEL_F32 && !image.alpha && n % 2; i++)
			((float *)pixels)[random_below((uint32_t)(image_size(&image) / 4))] =
			    odd[i];
		assert_int_equal(reference_filter(chain, &image, pixels, &r), ERR_OK);
		for (size_t k = 0; k < image_size(&image) / pixel_type_size(image.type); k++) {
			const size_t pixel = k / image.bands;
			const uint32_t band = (uint32_t)(k % image.bands);
			const double got = image_get_sample(r.pixels, k, image.type);
			const double wanted = plain_sample(
			    &op, &image, pixels, (enum border)chain->border,
			    (int)(pixel % image.width), (int)(pixel / image.width), band);
			const double off =
			    image.type == PIXEL_F32 ? 1e-6 * (1 + fabs(wanted)) : 0.5 + 1e-6;

			if (image.alpha && band == image.bands - 1 && !op.smoothing)
				continue; /* it is kept */
			if (image.alpha && !op.smoothing && op.kind == OPERATION_MATRIX)
				continue;
			if (isfinite(wanted) ? !(fabs(got - wanted) <= off) : isfinite(got))
				fail_msg("%s, %ux%ux%u type %u, border %s: %zu is %.9g, not %.9g",
				         links[n % (sizeof links / sizeof *links)], image.width,
				         image.height, image.bands, image.type,
				         border_name((enum border)chain->border), k, got, wanted);
		}
		operation_fini(&op);
		reference_fini(&r);
		free(pixels);
		free(chain);
	}
}

static double cost_of(const char *text, enum pixel_type type)
{
	const struct image image = {4096, 4096, 3, type, 0};
	struct chain *chain = chain_of(text);
	const double cost = reference_cost_in_pieces(chain, &image);

	free(chain);
	return cost / 4096 / 4096 / 3;
}

/* Predictions tell apart what takes apart times; bench_reference measures how well. */
static void test_reference_cost(void **state)
{
	(void)state;
	for (enum pixel_type type = PIXEL_U8; type < PIXEL_TYPES; type++) {
		/* An arc tangent, and a curve of each sample. */
		assert_true(cost_of("prewitt=output=direction", type) >
		            3 * cost_of("prewitt", type));
		assert_true(cost_of("sobel=output=direction", type) > 3 * cost_of("scharr", type));
		/* A blur and a comparison, not a comparison alone. */
		assert_true(cost_of("threshold=method=mean", type) >
		            2 * cost_of("threshold", type));
		assert_true(cost_of("threshold=method=gaussian:size=9", type) >
		            2 * cost_of("threshold=method=otsu", type));
		/* A histogram follows the window, whatever the type. */
		assert_true(cost_of("median=radius=15", type) < 8 * cost_of("median", type));
		assert_true(cost_of("median=radius=15", type) > 2 * cost_of("median", type));
		assert_true(cost_of("median,median", type) > 2 * cost_of("median", type));
		for (uint32_t f = 0; f < FILTERS; f++) /* no row is missing */
			if (f != FILTER_CONVOLVE && f != FILTER_COLORMATRIX && f != FILTER_LUT)
				assert_true(cost_of(filter_name(f), type) >= 10);
	}
	assert_true(cost_of("gamma", PIXEL_U16) > 5 * cost_of("gamma", PIXEL_U8));
}

/* One pixel of the result of a filter on a small image. */
static void check_pixel(const char *text, uint32_t channels, const struct image *image,
                        const void *pixels, size_t at, const double *wanted)
{
	struct chain *chain = chain_of(text);
	struct reference r;

	chain->call[0].channels = channels;
	assert_int_equal(reference_filter(chain, image, pixels, &r), ERR_OK);
	for (uint32_t b = 0; b < image->bands; b++) {
		double got = image_get_sample(r.pixels, at * image->bands + b, image->type);

		if (fabs(got - wanted[b]) > 1e-6 * fabs(wanted[b]))
			fail_msg("%s: band %u is %.9g, not %.9g", text, b, got, wanted[b]);
	}
	reference_fini(&r);
	free(chain);
}

/* Worked out by hand. */
static void test_reference_bilateral(void **state)
{
	const struct image grey = {3, 1, 1, PIXEL_F32, 0}, with_alpha = {3, 1, 2, PIXEL_F32, 1};
	const float row[] = {0.2f, 0.5f, 1}, pairs[] = {0.2f, 1, 0.5f, 0.5f, 1, 0};
	/* sigma_space 1, sigma_range 0.5: exp(-1/2 - e²/0.5); beside it, above and below: itself.
	 */
	double a = exp(-0.5 - 0.09 / 0.5), b = exp(-0.5 - 0.25 / 0.5), c = 1 + 2 * exp(-0.5);

	(void)state;
	check_pixel("bilateral=radius=1:sigma_space=1:sigma_range=0.5", 0, &grey, row, 1,
	            (double[]){(c * 0.5 + a * 0.2 + b) / (c + a + b)});
	check_pixel(
	    "bilateral=radius=1:sigma_space=1:sigma_range=0.5", 0, &with_alpha, pairs, 1,
	    (double[]){(c * 0.5 * 0.5 + a * 0.2) / (c * 0.5 + a), (c * 0.5 + a) / (c + a + b)});
	check_pixel("bilateral=radius=1:sigma_space=1:sigma_range=0.5", CHANNELS_COLOR, &with_alpha,
	            pairs, 1, (double[]){(c * 0.5 * 0.5 + a * 0.2) / (c * 0.5 + a), 0.5});
}

static void test_reference_unsharp(void **state)
{
	const struct image grey = {3, 1, 1, PIXEL_U8, 0}, with_alpha = {3, 1, 2, PIXEL_F32, 1};
	const uint8_t row[] = {10, 50, 110};
	const float pairs[] = {0.2f, 1, 0.5f, 0.5f, 1, 0};
	/* sigma 0.3: radius 1, weights t, 1, t over 1 + 2t. */
	double t = exp(-1 / 0.18), blur = (50 + t * 120) / (1 + 2 * t), alpha;

	(void)state;
	check_pixel("unsharp=sigma=0.3:amount=10", 0, &grey, row, 1,
	            (double[]){rint(50 + 10 * (50 - blur))});
	check_pixel("unsharp=sigma=0.3:amount=10:threshold=0.01", 0, &grey, row, 1, (double[]){50});
	blur = (0.25 + t * 0.2) / (1 + 2 * t);
	alpha = (0.5 + t) / (1 + 2 * t);
	check_pixel("unsharp=sigma=0.3:amount=2", 0, &with_alpha, pairs, 1,
	            (double[]){0.5 + 2 * (0.5 - blur / alpha), 0.5});
	blur = (0.5 + t * 1) / (1 + 2 * t);
	check_pixel("unsharp=sigma=0.3:amount=2", CHANNELS_ALPHA, &with_alpha, pairs, 1,
	            (double[]){0.5, 0.5 + 2 * (0.5 - blur)});
}

static void test_lower_lines(void **state)
{
	struct chain *chain = chain_of("gaussian=sigma_x=1:sigma_y=0.4,gaussian=size=7:sigma_x=2,"
	                               "log=sigma=2,motion=length=5:angle=90,highpass=sigma=0.5");
	static const uint32_t radius_x[] = {3, 3, 8, 0, 2}, radius_y[] = {2, 3, 8, 2, 2};
	struct operation op;

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(filter_lower(&chain->call[i], NULL, &op), ERR_OK);
		assert_int_equal(op.radius_x, radius_x[i]);
		assert_int_equal(op.radius_y, radius_y[i]);
		assert_int_equal(op.lattice.stride, 0);
		assert_true(op.smoothing == (i != 2 && i != 4));
		if (i < 2)
			assert_true(fabs(coefficient_sum(&op, 0, 7) - 1) < 1e-12);
		if (i == 2)
			assert_true(fabs(coefficient_sum(&op, 0, 17 * 17)) < 1e-12 &&
			            op.coefficients[8 * 17 + 8] < 0);
		for (int k = 0; i == 3 && k < 5; k++)
			assert_true(fabs(op.coefficients[k] - 0.2) < 1e-9);
		operation_fini(&op);
	}
	free(chain);
	assert_int_equal(parse_result("gaussian=sigma_x=101"), ERR_BAD_PARAMETER);
	assert_int_equal(parse_result("motion=length=64"), ERR_BAD_PARAMETER);
	assert_int_equal(parse_result("log=sigma=8"), ERR_BAD_PARAMETER);
}

static void test_lower_dog(void **state)
{
	struct chain *chain = chain_of("dog=sigma1=1:sigma2=0.5,dog,gaussian=sigma=0.5");
	struct operation op, narrow;

	(void)state;
	assert_int_equal(filter_lower(&chain->call[0], NULL, &op), ERR_OK);
	assert_int_equal(filter_lower(&chain->call[2], NULL, &narrow), ERR_OK);
	assert_int_equal(op.kind, OPERATION_DOG);
	assert_int_equal(op.radius_x, 3);
	assert_int_equal(op.radius_y, 3);
	assert_true(op.signed_output && !op.smoothing && op.gain == 2);
	assert_int_equal(operation_coefficients(&op), 14);
	assert_true(fabs(coefficient_sum(&op, 0, 7) - 1) < 1e-12);
	assert_true(op.coefficients[7] == 0 && op.coefficients[13] == 0);
	for (int i = 0; i < 5; i++)
		assert_true(op.coefficients[8 + i] == narrow.coefficients[i]);
	operation_fini(&op);
	operation_fini(&narrow);
	assert_true(chain->call[1].value[DOG_SIGMA1] == 1);
	assert_true(chain->call[1].value[DOG_SIGMA2] == 1.6);
	free(chain);
	assert_int_equal(parse_result("dog=sigma1=32:sigma2=0.1"), ERR_OK);
	assert_int_equal(parse_result("dog=sigma1=32.1"), ERR_BAD_PARAMETER);
	assert_int_equal(parse_result("dog=sigma2=0.09"), ERR_BAD_PARAMETER);
}

static void test_reference_dog(void **state)
{
	const struct image grey = {3, 1, 1, PIXEL_U8, 0}, with_alpha = {3, 1, 2, PIXEL_F32, 1};
	const uint8_t row[] = {10, 50, 110};
	const float pairs[] = {0.2f, 1, 0.5f, 0.5f, 1, 0};
	/* sigma 0.3 and 0.2: radius 1, weights t, 1, t over 1 + 2t. */
	double t1 = exp(-1 / 0.18), t2 = exp(-1 / 0.08);
	double blur1 = (50 + t1 * 120) / (1 + 2 * t1), blur2 = (50 + t2 * 120) / (1 + 2 * t2);

	(void)state;
	check_pixel("dog=sigma1=0.3:sigma2=0.2", 0, &grey, row, 1,
	            (double[]){rint(128 + blur1 - blur2)});
	blur1 = (0.5 + t1 * 1.2) / (1 + 2 * t1);
	blur2 = (0.5 + t2 * 1.2) / (1 + 2 * t2);
	check_pixel("dog=sigma1=0.2:sigma2=0.3", 0, &with_alpha, pairs, 1,
	            (double[]){blur2 - blur1, 0.5});
}

static void test_lower_morphology(void **state)
{
	struct chain *chain =
	    chain_of("dilate=size=7:shape=cross,tophat=size=7,morphgradient=size=7");
	struct operation op, extreme;

	(void)state;
	assert_int_equal(filter_lower(&chain->call[0], NULL, &op), ERR_OK);
	assert_int_equal(op.kind, OPERATION_EXTREME);
	assert_int_equal(op.radius_x, 3);
	assert_true(op.largest && op.element == ELEMENT_CROSS && !op.smoothing);
	operation_fini(&op);
	for (int i = 1; i < 3; i++) {
		assert_int_equal(filter_lower(&chain->call[i], NULL, &op), ERR_OK);
		assert_int_equal(op.radius_y, i == 1 ? 6 : 3);
		extreme = operation_extreme(&op, true);
		assert_true(extreme.radius_x == 3 && extreme.radius_y == 3 && extreme.largest);
		operation_fini(&op);
	}
	free(chain);
}

/* The rows of an ellipse of 7 and of a circle of 7, where an ellipse of 3 is a cross. */
static void test_element(void **state)
{
	static const int ellipse[] = {3, 3, 2, 0}, circle[] = {3, 2, 2, 0};

	(void)state;
	for (int j = -3; j <= 3; j++) {
		assert_int_equal(element_half_width(j, 3, ELEMENT_ELLIPSE), ellipse[abs(j)]);
		assert_int_equal(element_half_width(j, 3, ELEMENT_CIRCLE), circle[abs(j)]);
		assert_int_equal(element_half_width(j, 3, ELEMENT_CROSS), j ? 0 : 3);
		assert_int_equal(element_half_width(j, 3, ELEMENT_RECTANGLE), 3);
	}
	for (int j = -50; j <= 50; j++)
		assert_int_equal(element_half_width(j, 50, ELEMENT_ELLIPSE),
		                 (int)lround(sqrt(2500 - j * j)));
}

static void test_reference_morphology(void **state)
{
	const struct image grey = {5, 1, 1, PIXEL_U8, 0}, f32 = {5, 1, 1, PIXEL_F32, 0};
	const uint8_t row[] = {10, 50, 20, 90, 30};
	const float floats[] = {NAN, 0.5f, 0.25f, NAN, 1};

	(void)state;
	check_pixel("erode", 0, &grey, row, 2, (double[]){20});
	check_pixel("dilate", 0, &grey, row, 0, (double[]){50});
	check_pixel("open", 0, &grey, row, 1, (double[]){20});
	check_pixel("close", 0, &grey, row, 2, (double[]){50});
	check_pixel("tophat", 0, &grey, row, 3, (double[]){60});
	check_pixel("blackhat", 0, &grey, row, 2, (double[]){30});
	check_pixel("morphgradient", 0, &grey, row, 4, (double[]){60});
	check_pixel("erode", 0, &f32, floats, 0, (double[]){0.5});
	check_pixel("erode", 0, &f32, floats, 3, (double[]){0.25});
	check_pixel("dilate=size=1", 0, &f32, floats, 1, (double[]){0.5});
}

static void test_reference_curves(void **state)
{
	const struct image grey = {2, 1, 1, PIXEL_U8, 0}, with_alpha = {1, 1, 2, PIXEL_F32, 1};
	const uint8_t row[] = {51, 153};
	const float pair[] = {0.25f, 0.5f};

	(void)state;
	check_pixel("gamma=gamma=2", 0, &grey, row, 0, (double[]){rint(255 * sqrt(0.2))});
	check_pixel("levels=black=0.2:white=0.6", 0, &grey, row, 0, (double[]){0});
	check_pixel("levels=black=0.2:white=0.6", 0, &grey, row, 1, (double[]){255});
	check_pixel("levels=white=0.8:gamma=0.5", 0, &grey, row, 1,
	            (double[]){rint(255 * 0.75 * 0.75)});
	check_pixel("linear=gain=2:bias=-0.2", 0, &grey, row, 1, (double[]){255});
	check_pixel("linear=gain=2:bias=-0.2", 0, &grey, row, 0, (double[]){51});
	check_pixel("invert", 0, &grey, row, 1, (double[]){102});
	check_pixel("invert", 0, &with_alpha, pair, 0, (double[]){0.75, 0.5});
	check_pixel("invert", CHANNELS_ALPHA, &with_alpha, pair, 0, (double[]){0.25, 0.5});
	check_pixel("linear=gain=-8", 0, &with_alpha, pair, 0, (double[]){-2, 0.5});
	assert_int_equal(parse_result("levels=black=0.5:white=0.51"), ERR_OK);
	assert_int_equal(parse_result("levels=black=0.5:white=0.505"), ERR_BAD_PARAMETER);
	assert_int_equal(parse_result("linear=gain=101"), ERR_BAD_PARAMETER);
	assert_int_equal(parse_result("gamma=gamma=0"), ERR_BAD_PARAMETER);
}

static void test_reference_colours(void **state)
{
	const struct image grey = {2, 1, 1, PIXEL_U8, 0}, rgb = {1, 1, 3, PIXEL_U8, 0};
	const struct image rgba = {1, 1, 4, PIXEL_F32, 1};
	const uint8_t row[] = {51, 153}, pixel[] = {100, 200, 50};
	const float floats[] = {0.25f, 0.5f, 1, 0.5f};

	(void)state;
	check_pixel("linear=gain=2 1 0.5:bias=0 -0.2 0", 0, &rgb, pixel, 0,
	            (double[]){200, 149, 25});
	check_pixel("linear=gain=2 1 0.5", CHANNELS_BLUE, &rgb, pixel, 0, (double[]){100, 200, 25});
	check_pixel("lut=table=0 255 0", 0, &grey, row, 0, (double[]){102});
	check_pixel("lut=table=0 255 0", 0, &grey, row, 1, (double[]){204});
	check_pixel("lut=table=0 1;1 0;0 0.5:max=1", 0, &rgb, pixel, 0, (double[]){100, 55, 25});
	check_pixel("lut=points=51 10;153 110", 0, &rgb, pixel, 0, (double[]){58, 110, 10});
	check_pixel("lut=table=0 1 0:max=1", 0, &rgba, floats, 0, (double[]){0.5, 1, 0, 0.5});
	check_pixel("grayscale", 0, &rgb, pixel, 0, (double[]){153, 153, 153});
	check_pixel("grayscale=weights=mean", 0, &rgba, floats, 0,
	            (double[]){7.0 / 12, 7.0 / 12, 7.0 / 12, 0.5});
	check_pixel("grayscale", 0, &grey, row, 1, (double[]){153});
	check_pixel("colormatrix=matrix=0 1 0 0;0 0 1 0.2;1 0 0 0", 0, &rgb, pixel, 0,
	            (double[]){200, 101, 100});
	check_pixel("colormatrix=matrix=0 1 0 0;0 0 1 0;1 0 0 0", CHANNELS_GREEN, &rgb, pixel, 0,
	            (double[]){100, 50, 50});
	check_pixel("colormatrix=matrix=1 0 0 1 0;0 1 0 0 0;0 0 1 0 0;0 0 0 0.5 0.5", 0, &rgba,
	            floats, 0, (double[]){0.75, 0.5, 1, 0.75});
}

static void test_reference_pixelate(void **state)
{
	const struct image grey = {5, 1, 1, PIXEL_U8, 0}, with_alpha = {3, 1, 2, PIXEL_F32, 1};
	const uint8_t row[] = {10, 20, 40, 80, 3};
	const float pairs[] = {0.2f, 1, 0.5f, 0.5f, 1, 0};
	struct chain *chain = chain_of("pixelate=size=3");
	struct operation op;

	(void)state;
	assert_int_equal(filter_lower(&chain->call[0], NULL, &op), ERR_OK);
	assert_int_equal(op.kind, OPERATION_PIXELATE);
	assert_int_equal(op.radius_x, 2);
	assert_true(op.smoothing && op.gain == 1);
	operation_fini(&op);
	free(chain);
	/* By default what is outside the image is like its edge. */
	check_pixel("pixelate=size=2", 0, &grey, row, 0, (double[]){15});
	check_pixel("pixelate=size=2", 0, &grey, row, 3, (double[]){60});
	check_pixel("pixelate=size=3", 0, &grey, row, 4, (double[]){rint((80 + 3 + 3) / 3.0)});
	check_pixel("pixelate=size=2", 0, &with_alpha, pairs, 1,
	            (double[]){(0.2 + 0.25) / 1.5, 0.75});
	check_pixel("pixelate=size=2", CHANNELS_ALPHA, &with_alpha, pairs, 1,
	            (double[]){0.5, 0.75});
	assert_int_equal(parse_result("pixelate=size=256"), ERR_OK);
	assert_int_equal(parse_result("pixelate=size=257"), ERR_BAD_PARAMETER);
	assert_int_equal(parse_result("pixelate=size=2.5"), ERR_BAD_PARAMETER);
}

static void test_threshold(void **state)
{
	const struct image grey = {3, 1, 1, PIXEL_U8, 0}, with_alpha = {3, 1, 2, PIXEL_F32, 1};
	const uint8_t row[] = {10, 50, 127};
	const float pairs[] = {0.2f, 1, 0.5f, 0.5f, 1, 0};

	(void)state;
	check_pixel("threshold=value=0.2", 0, &grey, row, 0, (double[]){0});
	check_pixel("threshold=value=0.19", 0, &grey, row, 1, (double[]){255});
	check_pixel("threshold", 0, &grey, row, 2, (double[]){0});
	/* Means of 3: 23.3, 62.3, 101.3, rounded. */
	check_pixel("threshold=method=mean:size=3", 0, &grey, row, 1, (double[]){0});
	check_pixel("threshold=method=mean:size=3", 0, &grey, row, 2, (double[]){255});
	check_pixel("threshold=method=mean:size=3:offset=0.05", 0, &grey, row, 1, (double[]){255});
	/* Weighted by alpha 0.3, which the fully transparent 1 has no part in. */
	check_pixel("threshold=method=mean:size=3", 0, &with_alpha, pairs, 1, (double[]){1, 0.5});
	assert_int_equal(parse_result("threshold=method=mean:size=601:offset=-1"), ERR_OK);
	assert_int_equal(parse_result("threshold=method=mean:value=0.5"), ERR_BAD_PARAMETER);
	assert_int_equal(parse_result("threshold=size=5"), ERR_BAD_PARAMETER);
}

static void test_rank(void **state)
{
	static const struct {
		const char *filter;
		uint32_t rank;
	} rows[] = {
	    {"median", 4},
	    {"median=radius=15", 480},
	    {"median=radius=2:window=circle", 6},
	    {"rank=percentile=0", 0},
	    {"rank=percentile=100", 8},
	    {"rank=percentile=31", 2},
	    {"rank=percentile=31.5", 3},
	};
	const struct image grey = {3, 1, 1, PIXEL_U8, 0}, f32 = {3, 1, 1, PIXEL_F32, 0};
	const uint8_t row[] = {10, 50, 20};
	const float floats[] = {NAN, 0.5f, -1};
	struct operation op;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chain *chain = chain_of(rows[i].filter);

		assert_int_equal(filter_lower(&chain->call[0], NULL, &op), ERR_OK);
		assert_int_equal(op.kind, OPERATION_RANK);
		assert_int_equal(op.rank, rows[i].rank);
		operation_fini(&op);
		free(chain);
	}
	check_pixel("median", 0, &grey, row, 1, (double[]){20});
	check_pixel("rank=percentile=100", 0, &grey, row, 2, (double[]){50});
	check_pixel("median", 0, &f32, floats, 1, (double[]){0.5});
	check_pixel("rank=percentile=60", 0, &f32, floats, 1, (double[]){0.5});
}

static void test_reference_direction(void **state)
{
	const struct image grey = {3, 3, 1, PIXEL_U8, 0}, f32 = {3, 3, 1, PIXEL_F32, 0};
	const uint8_t flat[9] = {7, 7, 7, 7, 7, 7, 7, 7, 7}, left[9] = {2, 1, 0, 2, 1, 0, 2, 1, 0};
	const float down[9] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
	struct chain *chain = chain_of("sobel=output=direction");
	struct difference d = {0};
	struct reference r;
	uint8_t other[9];

	(void)state;
	check_pixel("sobel=output=direction", 0, &grey, flat, 4, (double[]){128}); /* 127.5 */
	check_pixel("sobel=output=direction", 0, &grey, left, 4, (double[]){255}); /* pi */
	check_pixel("sobel=output=direction", 0, &f32, down, 4, (double[]){acos(-1) / 2});
	assert_int_equal(reference_filter(chain, &grey, left, &r), ERR_OK);
	memset(other, 0, sizeof other); /* -pi is the same direction */
	difference_add(&d, &r, other, 3);
	assert_true(d.samples == 9 && d.mismatches == 0 && d.largest == 0);
	other[5] = 3;
	difference_add(&d, &r, other, 3);
	assert_true(d.mismatches == 1 && d.largest == 3 && d.x == 2 && d.y == 1 && d.wanted == 255);
	reference_fini(&r);
	free(chain);
}

/* A result may be anything where the reference is NaN, whatever the slack is. */
static void test_reference_nan(void **state)
{
	float wanted = NAN, slack = NAN;
	const struct reference r = {.window = {0, 0, 1, 1},
	                            .bands = 1,
	                            .type = PIXEL_F32,
	                            .pixels = &wanted,
	                            .slack = &slack};
	struct difference d = {0};

	(void)state;
	difference_add(&d, &r, &(float){5}, sizeof(float));
	assert_true(d.samples == 1 && d.mismatches == 0);
}

/* Which samples change, and what YCbCr is. */
static void test_reference_channels(void **state)
{
	const struct image rgba = {2, 1, 4, PIXEL_U8, 1}, rgb = {2, 1, 3, PIXEL_U8, 0};
	const uint8_t row[8] = {10, 20, 30, 255, 110, 220, 130, 55};
	const uint8_t colours[6] = {255, 0, 0, 0, 0, 255};
	const char *const half = "convolve=kernel=1 1 0:scale=2";

	(void)state;
	check_pixel(half, CHANNELS_RED, &rgba, row, 1, (double[]){60, 220, 130, 55});
	check_pixel(half, CHANNELS_BLUE, &rgba, row, 1, (double[]){110, 220, 80, 55});
	check_pixel(half, CHANNELS_ALPHA, &rgba, row, 1, (double[]){110, 220, 130, 155});
	check_pixel(half, CHANNELS_COLOR, &rgba, row, 1,
	            (double[]){rint((10 * 255 + 110 * 55) / 310.0),
	                       rint((20 * 255 + 220 * 55) / 310.0),
	                       rint((30 * 255 + 130 * 55) / 310.0), 55});
	/* Y of red 76.245, of blue 29.07: blue becomes lighter by 23.5875, but for saturation. */
	check_pixel(half, CHANNELS_LUMA, &rgb, colours, 1, (double[]){24, 24, 255});
	/* Nothing is lit from anywhere: Y is in the middle of the range, 127.5, Cb and Cr stay. */
	check_pixel("sobel=output=direction", CHANNELS_LUMA, &rgb, (uint8_t[]){9, 9, 9, 9, 9, 9}, 1,
	            (double[]){128, 128, 128});
	/* Cb and Cr in the middle between both; Y stays 29.07. */
	check_pixel(half, CHANNELS_CHROMA, &rgb, colours, 1,
	            (double[]){rint(29.07 + (255 - 76.245 - 29.07) / 2), 0,
	                       rint(29.07 + (255 - 29.07 - 76.245) / 2)});
}

/* Each text about a format must lead back to it, and a row must have everything that others read of
 * it. */
static void test_formats(void **state)
{
	const struct format_offer *offer;
	size_t offered = 0;
	char all[96];

	(void)state;
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++) {
		const struct format_row *r = format_row(f);

		assert_int_equal(format_parse(format_name(f)), f);
		assert_int_equal(format_parse_media_type(format_media_type(f)), f);
		if (!format_in(format_sets_known().written, f)) {
			assert_false(r->saver || r->kinds || r->types || r->side_max);
			continue;
		}
		assert_true(r->kinds & KIND_GREY && r->kinds & KIND_RGB && r->kinds_text);
		assert_true(r->types & TYPE_U8 && r->side_max && r->side_max <= IMAGE_SIDE_MAX);
		assert_true(!r->lossless || r->lossy);
		assert_true(!r->quality == !(r->lossy & 1 << LOSS_SAMPLES));
		assert_true(!r->compression_text == !r->compression_first);
		/* AVIF has a reader of its own. */
		assert_true(!r->saver || r->loader || f == FORMAT_AVIF);
	}
	for (; (offer = format_offer(offered)); offered++)
		assert_int_equal(format_parse(offer->name), offer->format);
	assert_true(offered >= FORMATS - 1);
	assert_int_equal(format_parse("JPG"), FORMAT_JPEG);
	assert_int_equal(format_parse("jxr"), FORMAT_NONE);
	assert_int_equal(format_parse_media_type("image/x-portable-graymap"), FORMAT_PNM);
	assert_string_equal(format_name(FORMAT_NONE), "none");
	format_list_compressions(format_sets_known().written, all, sizeof all);
	assert_string_equal(all,
	                    "a level from 0 to 9 for png, and none, lzw, deflate or zstd for tiff");
	format_list_compressions(1 << FORMAT_PNG | 1 << FORMAT_GIF, all, sizeof all);
	assert_string_equal(all, "a level from 0 to 9 for png");
	format_list(1 << FORMAT_GIF | 1 << FORMAT_PNG, all, sizeof all);
	assert_string_equal(all, "png, gif");
}

static enum error read_head(struct head *head, const char *block, size_t size)
{
	char *copy = malloc(size + 1);

	memcpy(copy, block, size);
	return head_read(head, copy, size);
}

/* A block is read as it was written; one without a method and a path, with anything doubled, cut
 * off or unknown, is none. */
static void test_head(void **state)
{
#define BLOCK(text)                                                                                \
	{                                                                                          \
		text, sizeof text - 1                                                              \
	}
#define START "\1GET\0\2/\0"
	static const struct {
		const char *block;
		size_t size;
	} bad[] = {
	    BLOCK(""),
	    BLOCK("\1GET\0"),
	    BLOCK("\2/\0"),
	    BLOCK("\1GET\0\2/"),
	    BLOCK(START "\0"),
	    BLOCK(START "\177\0"),
	    BLOCK(START "\377\0"),
	    BLOCK(START "\2/other\0"),
	    BLOCK(START "\4sigma\0"),
	    BLOCK(START "\0052\0"),
	    BLOCK(START "\4sigma\0\3::1\0\0052\0"),
	    BLOCK(START "\4sigma\0\0052\0\0053\0"),
	    BLOCK(START "\3123456789012345678901234567890123456789012345678\0"),
	};
#define EIGHT(text) text text text text text text text text
	static const struct {
		const char *block;
		size_t size;
	} bad_forms[] = {
	    BLOCK("\4sigma\0\0052"),
	    BLOCK("\4sigma\0"),
	    BLOCK("\0052\0"),
	    BLOCK("\3::1\0"),
	    BLOCK("\4sigma\0\0052\0\2/\0"),
	    BLOCK(EIGHT(EIGHT("\4n\0\5\0"))),
	};
	struct head_writer writer = {0};
	struct head head;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(read_head(&head, bad[i].block, bad[i].size), ERR_BAD_REQUEST);
		head_fini(&head);
	}
	for (size_t i = 0; i < sizeof bad_forms / sizeof *bad_forms; i++) {
		head = (struct head){.parameters = 1};
		head_append(&writer, bad_forms[i].block, bad_forms[i].size);
		assert_int_equal(head_read_form(&head, &writer), ERR_BAD_REQUEST);
		head_fini(&head);
	}
	head_add(&writer, HEAD_METHOD, "GET");
	head_add(&writer, HEAD_PATH, "/");
	head_add(&writer, HEAD_PREFER, "wait=1");
	head_extend(&writer, ", respond-", 10);
	head_extend(&writer, "async", 5);
	for (int i = 0; i < HEAD_PARAMETERS_MAX + 2; i++) {
		head_add(&writer, HEAD_NAME, i ? "n" : "");
		head_add(&writer, HEAD_VALUE, "");
	}
	assert_int_equal(head_read(&head, writer.data, writer.size), ERR_OK);
	writer = (struct head_writer){0};
	assert_string_equal(head.text[HEAD_PREFER], "wait=1, respond-async");
	assert_null(head.text[HEAD_HOST]);
	assert_int_equal(head.parameters, HEAD_PARAMETERS_MAX + 2);
	assert_string_equal(head.parameter[HEAD_PARAMETERS_MAX - 1].name, "n");
	assert_string_equal(head.parameter[0].value, "");
	head_fini(&head);
	head_add(&writer, HEAD_NAME, "sigma");
	head_add(&writer, HEAD_VALUE, "2");
	head.parameters = HEAD_PARAMETERS_MAX - 1;
	assert_int_equal(head_read_form(&head, &writer), ERR_OK);
	assert_int_equal(head.parameters, HEAD_PARAMETERS_MAX);
	assert_string_equal(head.parameter[HEAD_PARAMETERS_MAX - 1].value, "2");
	head_fini(&head);
}

/* Others' texts command no terminal: C0, DEL and C1, as a character and as a byte, go; letters
 * stay, also those whose bytes include one of C1. */
static void test_flatten(void **state)
{
	static const struct {
		const char *said, *shown;
	} cases[] = {
	    {"plain", "plain"},
	    {"a\x1b[2J\nb\x7f", "a?[2J?b?"},
	    {"\xc2\x9b"
	     "2J\xc2\x80\xc2\x9f\xc2\xa0",
	     "??2J????\xc2\xa0"},
	    {"\x9b"
	     "2J\x80",
	     "?2J?"},
	    {"\xc3\x9b\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\x9b\xe2\x82\xac\xf0\x9f\x98\x80"},
	    {"\xc2", "\xc2"},
	    {"\xe2\x82", "\xe2?"},
	    {"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[32];

		strcpy(text, cases[i].said);
		utf8_flatten(text);
		assert_string_equal(text, cases[i].shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_border_map),
	    cmocka_unit_test(test_flatten),
	    cmocka_unit_test(test_parse_valid),
	    cmocka_unit_test(test_parse_invalid),
	    cmocka_unit_test(test_matrix_limits),
	    cmocka_unit_test(test_lower_gaussian),
	    cmocka_unit_test(test_lower_matrix),
	    cmocka_unit_test(test_border_value),
	    cmocka_unit_test(test_tiling),
	    cmocka_unit_test(test_tiling_planes),
	    cmocka_unit_test(test_tiling_pages),
	    cmocka_unit_test(test_tiling_dense),
	    cmocka_unit_test(test_tiling_shared),
	    cmocka_unit_test(test_tiling_crop),
	    cmocka_unit_test(test_tiling_largest_width),
	    cmocka_unit_test(test_tiling_largest_sigma),
	    cmocka_unit_test(test_tiling_mostly_halo),
	    cmocka_unit_test(test_tile_hostile),
	    cmocka_unit_test(test_image_parse),
	    cmocka_unit_test(test_wire),
	    cmocka_unit_test(test_wire_descriptors),
	    cmocka_unit_test(test_stall),
	    cmocka_unit_test(test_worked),
	    cmocka_unit_test(test_lower_named),
	    cmocka_unit_test(test_chain_hostile),
	    cmocka_unit_test(test_regions),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_file),
	    cmocka_unit_test(test_area),
	    cmocka_unit_test(test_channels),
	    cmocka_unit_test(test_by_colour),
	    cmocka_unit_test(test_luma_and_chroma),
	    cmocka_unit_test(test_variant),
	    cmocka_unit_test(test_reference_window),
	    cmocka_unit_test(test_reference_slack),
	    cmocka_unit_test(test_reference_plain),
	    cmocka_unit_test(test_reference_cost),
	    cmocka_unit_test(test_reference_bilateral),
	    cmocka_unit_test(test_lower_lines),
	    cmocka_unit_test(test_lower_dog),
	    cmocka_unit_test(test_reference_dog),
	    cmocka_unit_test(test_lower_morphology),
	    cmocka_unit_test(test_element),
	    cmocka_unit_test(test_rank),
	    cmocka_unit_test(test_threshold),
	    cmocka_unit_test(test_reference_morphology),
	    cmocka_unit_test(test_reference_colours),
	    cmocka_unit_test(test_reference_pixelate),
	    cmocka_unit_test(test_reference_curves),
	    cmocka_unit_test(test_reference_unsharp),
	    cmocka_unit_test(test_reference_direction),
	    cmocka_unit_test(test_reference_nan),
	    cmocka_unit_test(test_formats),
	    cmocka_unit_test(test_head),
	    cmocka_unit_test(test_reference_channels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
