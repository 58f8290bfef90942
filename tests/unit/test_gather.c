/* Counts of values, which tests/http/test_gather.py and test_canny.py hold against numpy, and
 * chains that know what was counted; tests/http/test_pages.py has those of each page. */
#include <math.h>
#include <stdlib.h>

#include "chains.h"
#include "filters/chain_gather.h"

/* Floats beyond the range count at its ends, and what is no number not at all. */
TEST(test_floats)
{
	const float floats[] = {-1, 2, NAN, 0.5f, INFINITY};
	const struct image image = {5, 1, 1, PIXEL_F32, 0, {0}};
	static uint64_t counts[COUNTS_MAX];

	counts_add(counts, &image, false, floats, 5);
	assert_true(counts[0] == 1 && counts[32768] == 1 && counts[65535] == 2);
}

/* Calls know something of no page, or of each page that the others do. */
TEST(test_pages)
{
	static const double numbers[3 * 256];
	struct chain *asked = chain_of("lut=table=0 9,threshold=method=otsu,equalize");
	struct chain *next = chain_gathered(asked, 1, numbers, 1, 1, 3);
	struct chain *pages = chain_gathered(next, 2, numbers, 256, 1, 3);

	assert_true(chain_valid(next) && chain_valid(pages));
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
