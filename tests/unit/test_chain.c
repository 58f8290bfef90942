/* Chains: how texts become one, which fit an image and a kernel, and what is refused of another
 * process. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memfd.h"
#include "chains.h"
#include "filters/chain_check.h"
#include "filters/chain_gather.h"

TEST(test_parse_valid)
{
	struct chain *chain = chain_of("gaussian=sigma=2.5,box=size=7,convolve=kernel=1 2 1;2 "
	                               "4.0000000000000000000000000000000000000000 2;1 2 1:"
	                               "offset=3,sobel=output=y");
	uint32_t x, y;

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

/* Others are in tests/http/test_errors.py. */
TEST(test_parse_invalid)
{
	static const struct {
		const char *text, *parameter, *detail;
	} rows[] = {
	    {"guassian", "filter", "did you mean gaussian?"},
	    {"gauss", "filter", "did you mean gaussian?"},
	    {"sharpn", "filter", "did you mean sharpen?"},
	    {"blur", "filter", "did you mean gaussian?"},
	    {"Edge", "filter", "did you mean sobel?"},
	    {"laplace", "filter", "did you mean laplacian?"},
	    {"saturations", "filter", "did you mean colormatrix?"},
	    {"contrast=gain=2", "filter", "did you mean linear?"},
	    {"convolve=kernel=1 -2 1:scale=-1e-34", "scale", "least 4.65661e-09"},
	    {"convolve=kernel=1e9 -1e9 0", "kernel", "most 8.58993e+08"},
	    {"convolve=kernel=1 -1 1e-320:scale=1e-320", "scale", "least"},
	    {"linear=gain=1 101 1", "gain", "from -100 to 100"},
	    {"linear=gain=1 x 1", "gain", "row 1"},
	    {"linear=gain=1 1 1;2 2 2", "gain", "one for each colour"},
	    {"linear=gain=1 1 1:bias=0 1", "bias", "have as many"},
	    {"linear=bias=0 1 0 1 0", "bias", "one for each colour"},
	    {"equalize=tiles=8", "tiles", "with method=clahe only"},
	    {"equalize=method=global:clip=2", "clip", "with method=clahe only"},
	    {"equalize=method=clahe:tiles=0", "tiles", "from 1 to 32"},
	    {"equalize=method=clahe:tiles=2.5", "tiles", "from 1 to 32"},
	    {"equalize=method=clahe:clip=-1", "clip", "from 0 to 65536"},
	    {"clahe", "filter", "did you mean equalize?"},
	    {"lut", "table", "either a table"},
	    {"lut=table=0 1:points=0 0;1 1", "points", "either a table"},
	    {"lut=table=7", "table", "2 to 4096"},
	    {"lut=table=0 1;1 0;0 1;1 0;0 1", "table", "2 to 4096"},
	    {"lut=table=0 256", "table", "at most max"},
	    {"lut=table=0 -1", "table", "from 0 to 65535"},
	    {"lut=points=0 0", "points", "2 to 64 rows"},
	    {"lut=points=0 0 1 1", "points", "2 to 64 rows"},
	    {"lut=points=0 0;9 1;9 2", "points", "that rise"},
	    {"lut=points=0 0;0.5 2:max=1", "points", "nothing above max"},
	    {"colormatrix", "matrix", "3 rows of 4"},
	    {"colormatrix=matrix=1 0 0;0 1 0;0 0 1", "matrix", "3 rows of 4"},
	    {"colormatrix=matrix=1 0 0 11;0 1 0 0;0 0 1 0", "matrix", "from -10 to 10"},
	    {"grayscale=weights=red", "weights", "one of bt601, bt709, mean"},
	    {"pixelate=size=257", "size", "to 256"},
	    {"levels=black=0.5:white=0.505", "white", "0.01"},
	    {"motion=length=64", "length", "to 63"},
	    {"log=sigma=8", "sigma", "number from"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chain chain;

		chain_init(&chain);
		if (!chain_parse(&chain, rows[i].text, &problem) && !chain_check(&chain, &problem))
			fail_msg("%s is not refused", rows[i].text);
		assert_string_equal(problem.parameter, rows[i].parameter);
		if (!strstr(problem.detail, rows[i].detail))
			fail_msg("%s: %s", rows[i].text, problem.detail);
	}
}

TEST(test_regions_invalid)
{
	static const char *const bad[] = {"",
	                                  "1",
	                                  "1,2,3",
	                                  "1,2,3,4;",
	                                  "1,2,0,4",
	                                  "1,2,3,4,5",
	                                  ";1,2,3,4",
	                                  "ellipse:",
	                                  "ellipse",
	                                  "1 ,2,3,4",
	                                  "1e3,2,3,4",
	                                  "1,2,-3,4",
	                                  "--1,2,3,4",
	                                  "1,2,3,4\n",
	                                  "1,2,3,4;;1,2",
	                                  "1,2,3,4ellipse:1,2,3,4",
	                                  "polygon:",
	                                  "polygon:1,2 3,4",
	                                  "polygon:1,2 3,4 5",
	                                  "polygon:1,2,3,4,7,9",
	                                  "polygon:1,2  3,4 7,9",
	                                  "polygon: 1,2 3,4 7,9",
	                                  "polygon:1,2 3,4 7,9 ",
	                                  "polygon:1 2 3,4 7,9",
	                                  "polygon:1,2 3,4 7,9,",
	                                  "polygon:1,2 3,4 1.5,9",
	                                  "polygon:1,2 3,4 +7,9",
	                                  "polygon:1,2 3,4 -,9",
	                                  "polygon:1,2 3,4 1000001,9",
	                                  "polygon:1,2 3,4 7,-9999999999999999999999",
	                                  "polygon:1,1 2,2 9,9 5,5",
	                                  "polygon:1,1 1,1 1,1",
	                                  "polygon:1,2 3,4 7,9;",
	                                  "polygons:1,2 3,4 7,9",
	                                  "polygon-nonzero:1,2,30,40",
	                                  "1,2 3,4 7,9",
	                                  "ellipse:1,2 3,4 7,9",
	                                  "99999999,1,1,1",
	                                  "999999999999,1,1,1"};
	struct chain *chain = chain_of("box");

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (chain_set_regions(chain, bad[i], &problem) != ERR_BAD_PARAMETER)
			fail_msg("%s is taken", bad[i]);
	free(chain);
}

/* A tile has something to be written if shapes or their feather reach into it. */
TEST(test_regions_touch)
{
	const struct area beside = {0, 0, 5, 7}, touched = {0, 0, 6, 8}, far = {40, 0, 5, 5};
	struct chain *chain = chain_of("box");
	const double *shapes;

	assert_int_equal(chain_set_regions(chain, "6,8,3,2;ellipse:16,-7,5,9", &problem), ERR_OK);
	chain->regions.feather = 1;
	shapes = chain_shapes(chain);
	assert_false(regions_touch(&chain->regions, shapes, &beside));
	assert_true(regions_touch(&chain->regions, shapes, &touched));
	chain->regions.invert = 1;
	assert_true(regions_touch(&chain->regions, shapes, &far));
	assert_int_equal(
	    chain_set_regions(chain, "polygon:6,20 30,8 6,9;ellipse:16,-7,5,9", &problem), ERR_OK);
	shapes = chain_shapes(chain);
	chain->regions.invert = 0;
	assert_false(regions_touch(&chain->regions, shapes, &beside));
	assert_true(regions_touch(&chain->regions, shapes, &touched));
	free(chain);
}

/* A ROI moves all corners; the shapes between polygons keep theirs. */
TEST(test_regions_move)
{
	struct chain *chain = chain_of("box"), *moved = chain_of("box");
	const char *text = "polygon:1,2 30,-4 5,60;7,8,9,10;polygon-nonzero:-5,5 5,-5 6,6 7,8",
	           *there = "polygon:-2,7 27,1 2,65;4,13,9,10;polygon-nonzero:-8,10 2,0 3,11 4,13";

	assert_int_equal(chain_set_regions(chain, text, &problem), ERR_OK);
	assert_int_equal(chain_set_regions(moved, there, &problem), ERR_OK);
	regions_move(&chain->regions, &chain->coefficient[chain->regions.first], -3, 5);
	assert_true(chain_valid(chain));
	assert_int_equal(chain_size(chain), chain_size(moved));
	assert_memory_equal(chain, moved, chain_size(chain));
	free(moved);
	free(chain);
}

/* Numbers for each colour, and what mixes colours, fit some images and channels. */
TEST(test_by_colour)
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
	static const struct image images[] = {{5, 5, 1, PIXEL_U8, 0, {0}},
	                                      {5, 5, 2, PIXEL_U8, 0, {0}},
	                                      {5, 5, 3, PIXEL_U8, 0, {0}},
	                                      {5, 5, 4, PIXEL_U8, 1, {0}},
	                                      {5, 5, 4, PIXEL_U8, 0, {0}}};

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

TEST(test_variant)
{
	static const struct {
		const char *filters, *variant;
		const char *detail; /* words of the refusal; NULL: there is none */
	} rows[] = {
	    {"sobel,gaussian", "separable", NULL},
	    {"unsharp", "separable", NULL},
	    {"dog", "dog", NULL},
	    {"dog", "separable", "it supports gaussian, box, convolve, unsharp"},
	    {"close", "extreme", NULL},
	    {"open=size=101", "extreme", NULL},
	    {"threshold", "threshold", NULL},
	    {"threshold", "threshold_local_wide", "expected general, reference, threshold, "},
	    {"threshold", "separable",
	     "separable does not support threshold with these values, expected general, "},
	    {"threshold=method=mean", "unsharp_wide", "it supports unsharp"},
	    {"equalize=method=clahe", "clahe", NULL},
	    {"equalize", "lut", NULL},
	    {"equalize", "clahe", "clahe does not support equalize with these values"},
	    {"equalize=method=clahe", "lut", "lut does not support equalize with these values"},
	    {"gaussian", "matrx", "for gaussian, expected general, reference, separable, "},
	    {"threshold=method=mean", "mean", ", sep_one_pass, sep_tiled"}, /* the longest list */
	    {"sobel,gaussian", "none", "for sobel, expected general, reference, gradient"},
	    {"gaussian", "extend", "for gaussian"},
	    {"gaussian", "gradient", "it supports sobel, scharr, prewitt"},
	    {"sobel,emboss", "separable", "it supports gaussian, box, convolve, unsharp"},
	    {"gaussian=sigma=11", "separable_wide", NULL}, /* on a lattice */
	    {"gaussian=sigma=11:size=67", "matrix", "radius up to 31; that of gaussian is 33"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct chain *chain = chain_of(rows[i].filters);
		enum error e = chain_set_variant(chain, rows[i].variant, &problem);

		assert_int_equal(e, rows[i].detail ? ERR_BAD_PARAMETER : ERR_OK);
		if (e)
			assert_non_null(strstr(problem.detail, rows[i].detail));
		else
			assert_true(chain_valid(chain));
		free(chain);
	}
}

/* Messages that a process that has been taken over might send. */
TEST(test_chain_hostile)
{
	struct chain *chain = chain_of("sobel,convolve=kernel=1,box");

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
	BAD(call[0].shares, 1, 0);
	BAD(variant, KERNEL_EXTEND + 1, VARIANT_REFERENCE);
	BAD(variant, VARIANT_GENERAL + 1, KERNEL_MATRIX + 1);
	BAD(call[1].value[CONVOLVE_SCALE], 0, NAN);
	BAD(call[1].numbers[CONVOLVE_KERNEL].width, 2, 1);
	BAD(call[1].numbers[CONVOLVE_KERNEL].height, 65, 1);
	BAD(call[1].numbers[CONVOLVE_KERNEL].first, CHAIN_COEFFICIENTS_MAX, 0);
	BAD(call[2].value[BOX_SIZE], NAN, 3);
	BAD(regions.first, CHAIN_COEFFICIENTS_MAX + 1, 0);
	assert_int_equal(chain_set_regions(chain, "1,2,3,4", &problem), ERR_OK);
	assert_true(chain_valid(chain));
	BAD(regions.count, REGIONS_MAX + 1, 1);
	BAD(regions.count, UINT32_MAX, 1);
	BAD(regions.first, CHAIN_COEFFICIENTS_MAX - REGION_NUMBERS + 1, 1);
	BAD(regions.invert, 2, 1);
	BAD(regions.feather, REGIONS_FEATHER_MAX + 1, 0);
	BAD(regions.corners, 1, 0);
	for (int i = 0; i < REGION_NUMBERS; i++) {
		const double good = chain->coefficient[1 + i];

		BAD(coefficient[1 + i], NAN, good);
		BAD(coefficient[1 + i], 1e9, good);
		BAD(coefficient[1 + i], 0.5, good);
	}
	BAD(coefficient[1 + REGION_HEIGHT], 0, 4);
	free(chain);
	chain = chain_of("box");
	assert_int_equal(
	    chain_set_regions(chain, "9,9,9,9;polygon:1,2 30,4 5,60;polygon:5,5 6,9 7,5", &problem),
	    ERR_OK);
	assert_true(chain_valid(chain));
	BAD(coefficient[REGION_NUMBERS + REGION_KIND], REGION_ELLIPSE, REGION_POLYGON);
	BAD(coefficient[REGION_NUMBERS + REGION_KIND], REGION_KINDS, REGION_NONZERO);
	BAD(coefficient[REGION_NUMBERS + REGION_CORNERS], 2, 3);
	BAD(coefficient[REGION_NUMBERS + REGION_CORNERS], 7, 3);
	BAD(coefficient[2 * REGION_NUMBERS + REGION_FIRST], -1, 3);
	BAD(coefficient[2 * REGION_NUMBERS + REGION_FIRST], 4, 3);
	BAD(coefficient[2 * REGION_NUMBERS + REGION_CORNERS], 4, 3);
	BAD(regions.corners, 5, 6);
	BAD(regions.corners, 7, 6);
	BAD(regions.corners, UINT32_MAX, 6);
	for (int i = 3 * REGION_NUMBERS; i < 3 * REGION_NUMBERS + 12; i++) {
		const double good = chain->coefficient[i];

		BAD(coefficient[i], NAN, good);
		BAD(coefficient[i], 1e9, good);
		BAD(coefficient[i], -1e9, good);
		BAD(coefficient[i], good + 0.5, good);
	}
	free(chain);
	chain = chain_of("lut=points=0 0;90 200,linear=gain=1 2 3,"
	                 "colormatrix=matrix=1 0 0 0;0 1 0 0;0 0 1 0,threshold");
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
	BAD(call[3].value[THRESHOLD_SIZE], 5, NAN); /* only for means */
#undef BAD
	free(chain);
}

/* Reads the chain from a file with this many of its bytes. */
static enum error take(const struct chain *chain, size_t size)
{
	struct chain *taken;
	enum error e;
	int fd;

	assert_int_equal(memfd_sealed("chain", chain, size, &fd), ERR_OK);
	e = chain_take(fd, &taken);
	assert_true((e == ERR_OK) == (taken != NULL));
	if (taken)
		assert_memory_equal(taken, chain, size);
	free(taken);
	close(fd);
	return e;
}

/* A chain from another process is only as long as it says. */
TEST(test_invalid_rows)
{
	struct chain *asked = chain_of("convolve=kernel=1 2 1,linear=gain=1 2 3");
	struct numbers *kernel = &asked->call[0].numbers[CONVOLVE_KERNEL];
	struct numbers *gain = &asked->call[1].numbers[LINEAR_GAIN];

	asked->regions.first = asked->coefficients_used;
#define BAD(number, value, good)                                                                   \
	number = value;                                                                            \
	assert_int_equal(take(asked, chain_size(asked)), ERR_INTERNAL);                            \
	number = good;                                                                             \
	assert_int_equal(take(asked, chain_size(asked)), ERR_OK)
	BAD(gain->first, 4, 3);
	BAD(gain->height, 0, 1);
	BAD(kernel->height, 3, 1);
	BAD(asked->regions.count, 1, 0);
#undef BAD
	assert_int_equal(take(asked, 8), ERR_INTERNAL);
	free(asked);
}

TEST(test_endless_chain)
{
	int fd = memfd_create("chain", 0);
	struct chain *taken;

	assert_int_equal(ftruncate(fd, CHAIN_SIZE_MAX + 1), 0);
	assert_int_equal(chain_take(fd, &taken), ERR_IO);
	assert_null(taken);
	close(fd);
}

/* With an image's edges a chain is longer than its struct. */
TEST(test_invalid_edges)
{
	const size_t words = (size_t)edges_words(1281, 2000);
	struct chain *asked = chain_of("box,canny=low=0.1:sigma=3,sobel"), *found;
	double *plane = calloc(words, sizeof *plane);

	assert_non_null(plane);
	found =
	    chain_gathered(asked, 1, plane, &(struct image){1281, 2000, 1, PIXEL_U8, 0, {0}}, 1);
	assert_true(chain_size(found) > sizeof *found && chain_valid(found));
	assert_int_equal(take(found, chain_size(found)), ERR_OK);
	assert_int_equal(take(found, chain_size(found) - 8), ERR_INTERNAL);
	found->call[1].gathered.height++;
	assert_int_equal(take(found, chain_size(found)), ERR_INTERNAL);
	found->call[1].gathered.height = 0;
	assert_false(chain_valid(found));
	free(found);
	free(plane);
	free(asked);
}
