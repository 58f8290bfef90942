/* Counts of values, which tests/http/test_gather.py and test_canny.py hold against numpy, and
 * chains that know what was counted; tests/http/test_pages.py has those of each page. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chains.h"
#include "filters/chain_gather.h"

static const struct image grey = {5, 4, 1, PIXEL_U8, 0, {0}};

/* Floats beyond the range count at its ends, and what is no number not at all. */
TEST(test_floats)
{
	const float floats[] = {-1, 2, NAN, 0.5f, INFINITY};
	const struct image image = {5, 1, 1, PIXEL_F32, 0, {0}};
	static uint32_t counts[COUNTS_MAX];

	counts_add(counts, &image, false, floats, 5);
	assert_true(counts[0] == 1 && counts[32768] == 1 && counts[65535] == 2);
}

/* Calls know something of no page, or of each page that the others do. */
TEST(test_pages)
{
	static const double numbers[3 * 256];
	struct chain *asked = chain_of("lut=table=0 9,threshold=method=otsu,equalize");
	struct chain *next = chain_gathered(asked, 1, numbers, &grey, 3);
	struct chain *pages = chain_gathered(next, 2, numbers, &grey, 3);

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

enum { VALUES = 32 };

/* Reads what is made of counts. */
static void make_table(uint32_t counts[VALUES], double clip, uint16_t table[VALUES])
{
	uint64_t bits = 0;
	double word;

	assert_int_equal(clahe_words(VALUES), 1);
	counts_clahe(counts, VALUES, clip, &bits);
	memcpy(&word, &bits, sizeof word);
	clahe_table(&word, VALUES, table);
}

/* Asserts that a table has the shares up to each of its entries of these counts and `more` each. */
static void assert_shares(const uint16_t table[VALUES], const uint32_t counts[VALUES],
                          uint32_t more)
{
	uint32_t total = 0, sum = 0;

	for (int i = 0; i < VALUES; i++)
		total += counts[i] + more;
	for (int i = 0; i < VALUES; i++) {
		sum += counts[i] + more;
		assert_int_equal(table[i], lrintf((float)sum * ((VALUES - 1) / (float)total)));
	}
}

/* The excess of counts is spread over all, its rest over equal distances, and none is lost. */
TEST(test_clahe)
{
	static const uint32_t given[VALUES] = {[2] = 40, [3] = 1, [6] = 2, [31] = 1};
	static const uint32_t clipped[VALUES] = {[0] = 1,  [2] = 2,  [3] = 1,  [5] = 1,  [6] = 2,
	                                         [10] = 1, [15] = 1, [20] = 1, [25] = 1, [31] = 1};
	uint16_t table[VALUES];
	uint32_t counts[VALUES];

	memcpy(counts, given, sizeof counts);
	make_table(counts, 0, table);
	for (int i = 0; i < VALUES; i++)
		assert_int_equal(table[i], i < 2 ? 0 : i < 3 ? 28 : i < 6 ? 29 : i < 31 ? 30 : 31);
	memcpy(counts, given, sizeof counts);
	make_table(counts, 2, table); /* 2 at most, so 38: 1 each, and 6 */
	assert_shares(table, clipped, 1);
	assert_memory_equal(table, ((uint16_t[]){1, 2, 4, 6, 6, 8}), 6 * sizeof *table);
	assert_int_equal(table[31], 31);
	memset(counts, 0, sizeof counts); /* as if all were NaN */
	make_table(counts, 2, table);
	assert_int_equal(table[31], 0);
	memset(counts, 0, sizeof counts);
	counts[5] = 3; /* 1 at least */
	make_table(counts, 0.001, table);
	assert_shares(table, (uint32_t[VALUES]){[0] = 1, [5] = 1, [16] = 1}, 0);
	memset(counts, 0, sizeof counts);
	counts[5] = UINT32_MAX; /* limits beyond all counts */
	make_table(counts, COUNTS_MAX, table);
	assert_shares(table, (uint32_t[VALUES]){[5] = UINT32_MAX}, 0);
}

/* Any bits are a table. */
TEST(test_bits)
{
	uint16_t table[256];
	double words[8];

	memset(words, 0xff, sizeof words);
	clahe_table(words, 256, table);
	assert_true(table[0] == 0 && table[255] == 0);
	memset(words, 0, sizeof words);
	clahe_table(words, 256, table);
	assert_true(table[0] == 255 && table[255] == 255);
	memset(&words[6], 0xff, sizeof *words); /* higher than any entry */
	clahe_table(words, 256, table);
	assert_true(table[0] == 255 && table[64] == 255);
}

/* Tables of tiles may have any bits, but must be as many as those of an image of that size. */
TEST(test_invalid_tiles)
{
	struct chain *asked = chain_of("box,equalize=method=clahe:tiles=3,box"), *known;
	const struct image colours = {70, 50, 4, PIXEL_U16, 1, {0}};
	double *numbers = malloc(3 * 9 * 2 * COUNTS_MAX / 64 * sizeof *numbers);
	struct operation op;
	struct filter_call *call;

	assert_non_null(numbers);
	memset(numbers, 0xff, 3 * 9 * 2 * COUNTS_MAX / 64 * sizeof *numbers);
	known = chain_gathered(asked, 1, numbers, &colours, 1);
	call = &known->call[1];
	assert_true(chain_valid(known) && chain_gathering(known) == known->count);
	assert_int_equal(filter_lower(call, known->coefficient, &op), ERR_OK);
	assert_true(op.kind == OPERATION_CLAHE && op.tables == 3 && op.entries == COUNTS_MAX);
	assert_true(op.plane_words == 3 * 9 * 2 * COUNTS_MAX / 64 && op.plane_width == 70);
	operation_fini(&op);
	call->value[EQUALIZE_TILES] = 2;
	assert_false(chain_valid(known));
	call->value[EQUALIZE_TILES] = 3;
	call->gathered_from[1] = 0;
	assert_false(chain_valid(known));
	call->gathered_from[1] = 50;
	call->gathered.height = 2;
	assert_true(chain_valid(known));
	call->gathered.height = BANDS_MAX + 1;
	assert_false(chain_valid(known));
	call->gathered.height = 3;
	call->gathered.width -= 9;
	assert_false(chain_valid(known));
	free(known);
	free(asked);
	free(numbers);
}

TEST(test_invalid)
{
	struct chain *asked = chain_of("equalize,box"), *known;
	double numbers[256] = {0};

	known = chain_gathered(asked, 0, numbers, &grey, 1);
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
	assert_false(gather_valid(GATHER_TABLE, (double[]){0, -1e-9}, 2));
	assert_true(gather_valid(GATHER_TABLE, (double[]){0, 1}, 2));
	assert_true(gathering_valid(&(struct gathering){.kind = GATHER_EDGES}));
	assert_true(
	    gathering_valid(&(struct gathering){.kind = GATHER_TILES, .tiles = 32, .clip = 65536}));
	assert_false(gathering_valid(&(struct gathering){.kind = GATHERS}));
	assert_false(gathering_valid(&(struct gathering){.kind = GATHER_TILES}));
	assert_false(gathering_valid(&(struct gathering){.kind = GATHER_TILES, .tiles = 33}));
	assert_false(gathering_valid(&(struct gathering){.clip = NAN}));
}
