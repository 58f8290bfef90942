/* Counts of values, which tests/http/test_gather.py and test_canny.py hold against numpy, and
 * chains that know what was counted. */
#include <math.h>
#include <stdlib.h>

#include "chains.h"
#include "filters/chain_gather.h"

/* Floats beyond the range count at its ends, and what is no number not at all. */
TEST(test_floats)
{
	const float floats[] = {-1, 2, NAN, 0.5f, INFINITY};
	const struct image image = {5, 1, 1, PIXEL_F32, 0};
	static uint64_t counts[COUNTS_MAX];

	counts_add(counts, &image, false, floats, 5);
	assert_true(counts[0] == 1 && counts[32768] == 1 && counts[65535] == 2);
}

/* Each page has its own values; a chain for one of them is that of a single image. */
TEST(test_pages)
{
	struct chain *asked = chain_of("lut=table=0 9,threshold=method=otsu,equalize"), *next,
	             *pages, *of_page;
	const double thresholds[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}; /* two colours of three pages */
	double *tables = calloc(3 * 512, sizeof *tables);

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

TEST(test_invalid)
{
	struct chain *asked = chain_of("equalize,box"), *known;
	double numbers[256] = {0};

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
	assert_false(gather_valid((double[]){0, -1e-9}, 2));
	assert_true(gather_valid((double[]){0, 1}, 2));
}
