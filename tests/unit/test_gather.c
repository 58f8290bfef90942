/* The values made from counts against their definition, computed the long way; and chains before
 * and after they are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memfd.h"
#include "filters/chain_gather.h"

static const struct image grey = {1, 1, 1, PIXEL_U8, 0};

/* Returns the variance between the classes up to a value and above it. */
static double between(const uint64_t *counts, uint32_t n, uint32_t split)
{
	double size[2] = {0}, sum[2] = {0}, total;

	for (uint32_t i = 0; i < n; i++) {
		size[i > split] += (double)counts[i];
		sum[i > split] += (double)counts[i] * i;
	}
	total = size[0] + size[1];
	if (size[0] == 0 || size[1] == 0)
		return 0;
	return size[0] * size[1] / (total * total) * pow(sum[0] / size[0] - sum[1] / size[1], 2);
}

static void test_threshold(void **state)
{
	(void)state;
	srand(7);
	for (int k = 0; k < 200; k++) {
		uint64_t counts[256] = {0};
		double best = 0, chosen, threshold;

		for (int i = 0; i < 256; i++)
			counts[i] = rand() % (1 + k) ? 0 : (uint64_t)rand() % 1000;
		for (uint32_t split = 0; split < 256; split++)
			best = fmax(best, between(counts, 256, split));
		threshold = counts_threshold(counts, 256) * 255;
		chosen = between(counts, 256, (uint32_t)floor(threshold));
		assert_true(chosen >= best * (1 - 1e-9));
		assert_true(fabs(threshold - floor(threshold) - 0.5) < 1e-9);
	}
}

static void test_threshold_of_few(void **state)
{
	uint64_t two[256] = {[10] = 5, [200] = 3}, alone[256] = {[90] = 4}, none[256] = {0};

	(void)state;
	assert_true(fabs(counts_threshold(two, 256) * 255 - 10.5) < 1e-9);
	assert_true(counts_threshold(alone, 256) * 255 < 1);
	assert_true(counts_threshold(none, 256) * 255 < 1);
}

static void test_table(void **state)
{
	uint64_t counts[256] = {[10] = 2, [20] = 3, [255] = 1}, alone[256] = {[90] = 4};
	static uint64_t many[COUNTS_MAX];
	double table[GATHER_ENTRIES_MAX];

	(void)state;
	counts_table(counts, 256, table, 256);
	assert_true(table[0] == 0 && table[10] == 0 && table[19] == 0);
	assert_true(table[20] == 0.75 && table[254] == 0.75 && table[255] == 1);
	counts_table(alone, 256, table, 256);
	for (int i = 0; i < 256; i++)
		assert_true(table[i] == i / 255.0);
	/* If there are more counts than entries, each belongs to the nearest. */
	many[0] = many[32] = many[33] = many[COUNTS_MAX - 1] = 1;
	counts_table(many, COUNTS_MAX, table, GATHER_ENTRIES_MAX);
	assert_true(table[0] == 0 && table[1] == 0.5);
	assert_true(table[GATHER_ENTRIES_MAX - 2] == table[1] &&
	            table[GATHER_ENTRIES_MAX - 1] == 1);
}

static void test_adding(void **state)
{
	const uint8_t bytes[] = {0, 7, 255, 9, 255, 9};
	const uint16_t words[] = {0, 65535, 32768};
	const float floats[] = {-1, 2, NAN, 0.5f, INFINITY};
	const uint8_t colours[] = {200, 100, 50, 255, 0, 0, 255, 255};
	const struct image two = {3, 1, 2, PIXEL_U8, 1}, rgba = {2, 1, 4, PIXEL_U8, 1};
	const struct image deep = {3, 1, 1, PIXEL_U16, 0}, real = {5, 1, 1, PIXEL_F32, 0};
	static uint64_t counts[COUNTS_MAX];

	(void)state;
	counts_add(counts, &two, false, bytes, 3);
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[255], 2);
	assert_int_equal(counts[9] + counts[7], 0); /* alpha */
	memset(counts, 0, sizeof counts);
	counts_add(counts, &deep, false, words, 3);
	assert_true(counts[0] == 1 && counts[32768] == 1 && counts[65535] == 1);
	memset(counts, 0, sizeof counts);
	counts_add(counts, &real, false, floats, 5);
	assert_true(counts[0] == 1 && counts[32768] == 1 && counts[65535] == 2);
	memset(counts, 0, sizeof counts);
	counts_add(counts, &rgba, true, colours, 2);
	assert_true(counts[124] == 1 && counts[29] == 1); /* 124.2, 29.07 */
	memset(counts, 0, sizeof counts);
	counts_add(counts, &rgba, false, colours, 2);
	assert_true(counts[200] == 1 && counts[256 + 100] == 1 && counts[512 + 255] == 1);
}

static struct chain *chain_of(const char *text)
{
	struct chain *chain = malloc(sizeof *chain);
	struct problem problem;

	assert_non_null(chain);
	chain_init(chain);
	assert_int_equal(chain_parse(chain, text, &problem), ERR_OK);
	assert_int_equal(chain_check(chain, &problem), ERR_OK);
	return chain;
}

static void test_chains(void **state)
{
	struct chain *asked = chain_of("box,equalize,threshold=method=otsu,sobel"), *before, *next;
	double numbers[GATHER_NUMBERS_MAX] = {0};
	struct operation op;

	(void)state;
	asked->variant = VARIANT_GENERAL;
	assert_int_equal(chain_gathering(asked), 1);
	before = chain_before(asked, 1);
	assert_true(before->count == 1 && before->call[0].filter == FILTER_BOX);
	assert_int_equal(before->variant, VARIANT_GENERAL);
	assert_true(chain_valid(before));
	assert_int_equal(chain_gathering(before), before->count);
	free(before);
	before = chain_before(asked, 0); /* there must be a filter */
	assert_true(chain_valid(before) && before->call[0].filter == FILTER_LINEAR);
	free(before);

	for (int i = 0; i < 2 * 256; i++)
		numbers[i] = i % 256 / 255.0;
	next = chain_gathered(asked, 1, numbers, 256, 2, 1);
	assert_true(chain_valid(next));
	assert_int_equal(chain_gathering(next), 2);
	assert_int_equal(filter_by_colour(&next->call[1]), 2);
	assert_int_equal(filter_lower(&next->call[1], next->coefficient, &op), ERR_OK);
	assert_true(op.tables == 2 && op.entries == 256 && op.coefficients[256 + 51] == 0.2);
	operation_fini(&op);
	free(asked);
	asked = chain_gathered(next, 2, (double[]){0.25, 0.75}, 1, 2, 1);
	free(next);
	assert_true(chain_valid(asked));
	assert_int_equal(chain_gathering(asked), asked->count);
	assert_int_equal(filter_lower(&asked->call[2], asked->coefficient, &op), ERR_OK);
	assert_true(op.by_band && op.limit[0] == 0.25 && op.limit[1] == 0.75);
	operation_fini(&op);
	free(asked);
}

/* Values that are shares of the image's shorter side. */
static void test_sizes(void **state)
{
	struct chain *asked = chain_of("unsharp=sigma=2%:amount=3,gaussian=sigma_x=1%:sigma=5"),
	             *sized;
	struct problem problem;

	(void)state;
	assert_true(chain_has_shares(asked));
	assert_false(chain_valid(asked));
	assert_int_equal(chain_size_to(asked, 300, 900, &sized, &problem), ERR_OK);
	assert_true(chain_valid(sized) && !chain_has_shares(sized));
	assert_true(sized->call[0].value[UNSHARP_SIGMA] == 6 &&
	            sized->call[0].value[UNSHARP_AMOUNT] == 3);
	assert_true(sized->call[1].value[GAUSSIAN_SIGMA_X] == 3 &&
	            sized->call[1].value[GAUSSIAN_SIGMA] == 5);
	free(sized);
	assert_int_equal(chain_size_to(asked, 9, 9, &sized, &problem), ERR_BAD_PARAMETER);
	assert_null(sized);
	assert_string_equal(problem.parameter, "sigma_x");
	assert_int_equal(chain_size_to(asked, 90000, 5001, &sized, &problem), ERR_BAD_PARAMETER);
	assert_string_equal(problem.parameter, "sigma");
	assert_non_null(strstr(problem.detail, "expected 0.1 to 100; instead, use pixelate, or"));
	free(asked);
	asked = chain_of("gaussian=sigma=9%:sigma=2"); /* the last counts */
	assert_false(chain_has_shares(asked));
	free(asked);
}

/* Data that another process may send in place of a chain. */
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

/* A canny is looked for by filters of its own, and then longer than a struct. */
static void test_edges_of_chains(void **state)
{
	struct chain *asked = chain_of("box,canny=low=0.1:sigma=3,sobel"), *before, *next;
	const size_t words = (size_t)edges_words(1281, 2000);
	double *plane = calloc(words, sizeof *plane);
	struct operation op;

	(void)state;
	assert_non_null(plane);
	before = chain_before(asked, 1);
	assert_true(before->count == 3 && before->call[1].filter == FILTER_GAUSSIAN);
	assert_true(chain_valid(before) && before->call[2].value[CANNY_SIGMA] == 0);
	assert_int_equal(filter_lower(&before->call[2], before->coefficient, &op), ERR_OK);
	assert_true(op.kind == OPERATION_CANNY && op.radius_x == 2 && op.low == 0.1);
	operation_fini(&op);
	free(before);
	asked->call[1].channels = CHANNELS_LUMA;
	before = chain_before(asked, 1);
	assert_true(before->count == 4 && before->call[1].filter == FILTER_GRAYSCALE);
	assert_int_equal(before->call[3].channels, CHANNELS_ALL);
	free(before);

	memset(&plane[words - 1], 1, sizeof *plane);
	next = chain_gathered(asked, 1, plane, 1281, 2000, 1);
	assert_true(chain_size(next) > sizeof *next && chain_valid(next));
	assert_int_equal(chain_gathering(next), next->count);
	assert_int_equal(filter_lower(&next->call[1], next->coefficient, &op), ERR_OK);
	assert_true(op.kind == OPERATION_EDGES && op.radius_x == 2 + 9 && op.gain == 1);
	assert_true(edges_at(op.plane, op.plane_width, 1280, 1999));
	operation_fini(&op);
	assert_int_equal(take(next, chain_size(next)), ERR_OK);
	assert_int_equal(take(next, chain_size(next) - 8), ERR_INTERNAL);
	next->call[1].gathered.height++;
	assert_int_equal(take(next, chain_size(next)), ERR_INTERNAL);
	next->call[1].gathered.height = 0;
	assert_false(chain_valid(next));
	free(next);
	free(plane);
	free(asked);
}

/* Each page has its own values; a chain for one of them is that of a single image. */
static void test_pages(void **state)
{
	struct chain *asked = chain_of("lut=table=0 9,threshold=method=otsu,equalize"), *next,
	             *pages, *of_page;
	const double thresholds[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}; /* two colours of three pages */
	double *tables = calloc(3 * 512, sizeof *tables);

	(void)state;
	assert_non_null(tables);
	for (int i = 0; i < 3 * 512; i++)
		tables[i] = i / 2000.0;
	assert_int_equal(chain_pages(asked), 1);
	next = chain_gathered(asked, 1, thresholds, 1, 2, 3);
	assert_true(chain_valid(next) && chain_pages(next) == 3 && chain_gathering(next) == 2);
	of_page = chain_of_page(next, 2);
	assert_int_equal(chain_gathering(of_page), 2);
	free(of_page);
	pages = chain_gathered(next, 2, tables, 256, 2, 3);
	assert_true(chain_valid(pages) && chain_pages(pages) == 3);
	for (uint32_t page = 0; page < 3; page++) {
		struct chain *first = chain_gathered(asked, 1, thresholds + 2 * page, 1, 2, 1);
		struct chain *wanted =
		    chain_gathered(first, 2, tables + (size_t)512 * page, 256, 2, 1);

		of_page = chain_of_page(pages, page);
		assert_int_equal(chain_size(of_page), chain_size(wanted));
		assert_memory_equal(of_page, wanted, chain_size(wanted));
		free(of_page);
		free(wanted);
		free(first);
	}
	pages->call[1].more_pages = 1; /* the other call knows three */
	assert_false(chain_valid(pages));
	pages->call[1].more_pages = pages->call[2].more_pages = 3; /* more than there are */
	assert_false(chain_valid(pages));
	pages->call[1].more_pages = pages->call[2].more_pages = UINT32_MAX;
	assert_false(chain_valid(pages));
	asked->call[0].more_pages = 1;
	assert_false(chain_valid(asked));
	free(pages);
	free(next);
	free(tables);
	free(asked);
}

static void test_invalid(void **state)
{
	struct chain *asked = chain_of("equalize,box"), *known;
	double numbers[256] = {0};

	(void)state;
	known = chain_gathered(asked, 0, numbers, 256, 1, 1);
	assert_true(chain_valid(known));
	known->coefficient[known->call[0].gathered.first + 9] = NAN;
	assert_false(chain_valid(known));
	known->coefficient[known->call[0].gathered.first + 9] = 1.01;
	assert_false(chain_valid(known));
	known->coefficient[known->call[0].gathered.first + 9] = 1;
	assert_true(chain_valid(known));
	known->call[0].gathered.width = 255;
	assert_false(chain_valid(known));
	known->call[0].gathered = (struct numbers){CHAIN_COEFFICIENTS_MAX - 255, 256, 1};
	assert_false(chain_valid(known));
	known->call[0].gathered = (struct numbers){0, 256, BANDS_MAX + 1};
	assert_false(chain_valid(known));
	known->call[0].gathered = (struct numbers){0};
	known->call[1].gathered = (struct numbers){0, 1, 1}; /* not of a box */
	assert_false(chain_valid(known));
	free(known);
	free(asked);
	assert_int_equal(gather_entries(GATHER_THRESHOLD, PIXEL_F32), 1);
	assert_int_equal(gather_rows(&grey, true), 1);
	assert_false(gather_valid((double[]){0, -1e-9}, 2));
	assert_true(gather_valid((double[]){0, 1}, 2));
}

/* A chain from another process is only as long as it says. */
static void test_invalid_rows(void **state)
{
	struct chain *asked = chain_of("convolve=kernel=1 2 1,linear=gain=1 2 3");
	struct numbers *kernel = &asked->call[0].numbers[CONVOLVE_KERNEL];
	struct numbers *gain = &asked->call[1].numbers[LINEAR_GAIN];

	(void)state;
	assert_int_equal(take(asked, chain_size(asked)), ERR_OK);
	gain->first++;
	assert_int_equal(take(asked, chain_size(asked)), ERR_INTERNAL);
	gain->first--;
	gain->height = 0;
	assert_int_equal(take(asked, chain_size(asked)), ERR_INTERNAL);
	gain->height = 1;
	kernel->height = 3;
	assert_int_equal(take(asked, chain_size(asked)), ERR_INTERNAL);
	kernel->height = 1;
	asked->regions.count = 1;
	asked->regions.first = asked->coefficients_used;
	assert_int_equal(take(asked, chain_size(asked)), ERR_INTERNAL);
	asked->regions.count = 0;
	assert_int_equal(take(asked, chain_size(asked)), ERR_OK);
	free(asked);
}

/* A chain from another process passes the checks of a request's. */
static void test_invalid_calls(void **state)
{
	struct chain *asked = chain_of("threshold=method=mean");

	(void)state;
	assert_true(chain_valid(asked));
	asked->call[0].value[THRESHOLD_METHOD] = THRESHOLD_BY_VALUE;
	assert_true(chain_valid(asked));
	asked->call[0].value[THRESHOLD_SIZE] = 5; /* only for means */
	assert_false(chain_valid(asked));
	free(asked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_threshold),    cmocka_unit_test(test_threshold_of_few),
	    cmocka_unit_test(test_table),        cmocka_unit_test(test_adding),
	    cmocka_unit_test(test_chains),       cmocka_unit_test(test_invalid),
	    cmocka_unit_test(test_invalid_rows), cmocka_unit_test(test_invalid_calls),
	    cmocka_unit_test(test_sizes),        cmocka_unit_test(test_edges_of_chains),
	    cmocka_unit_test(test_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
