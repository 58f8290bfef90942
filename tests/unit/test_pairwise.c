/* The cover of pairs that test_kernels chooses its trials by, held against all pairs there are. */
#include "../kernels/pairwise.h"
#include "unit.h"

enum { SEEDS = 5 };

static const struct {
	size_t factors;
	unsigned levels[PAIRWISE_FACTORS];
	size_t rows_most; /* not much more than the two largest factors need */
} sets[] = {
    {2, {1, 1}, 1},
    {2, {3, 4}, 12},
    {4, {2, 2, 2, 2}, 8},
    {7, {1, 3, 8, 6, 8, 6, 2}, 80},
    {7, {7, 3, 8, 6, 8, 6, 2}, 90},
    {5, {16, 6, 8, 6, 2}, 150},
    {5, {60, 6, 8, 6, 2}, 520},
    {8, {4, 4, 4, 4, 4, 4, 4, 4}, 36},
};

enum { SETS = sizeof sets / sizeof *sets };

static bool has_pair(const struct pairwise *p, size_t f, unsigned i, size_t g, unsigned k)
{
	for (size_t r = 0; r < p->rows; r++)
		if (p->row[r][f] == i && p->row[r][g] == k)
			return true;
	return false;
}

static void check_pairs(const struct pairwise *p, const unsigned *levels)
{
	for (size_t f = 0; f < p->factors; f++)
		for (size_t g = 0; g < p->factors; g++)
			for (unsigned i = 0; i < levels[f]; i++)
				for (unsigned k = 0; k < levels[g]; k++)
					if (f != g || i == k)
						assert_true(has_pair(p, f, i, g, k));
}

static void check_levels(const struct pairwise *p, const unsigned *levels)
{
	for (size_t r = 0; r < p->rows; r++)
		for (size_t f = 0; f < p->factors; f++)
			assert_true(p->row[r][f] < levels[f]);
}

TEST(every_pair_meets)
{
	static struct pairwise p;

	for (size_t i = 0; i < SETS; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			assert_true(pairwise_init(&p, sets[i].levels, sets[i].factors, seed));
			check_levels(&p, sets[i].levels);
			check_pairs(&p, sets[i].levels);
			assert_in_range(p.rows, 1, sets[i].rows_most);
		}
}

TEST(what_is_too_much_is_refused)
{
	static struct pairwise p;
	static const unsigned many[PAIRWISE_FACTORS + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};

	assert_false(pairwise_init(&p, many, PAIRWISE_FACTORS + 1, 1));
	assert_false(pairwise_init(&p, (unsigned[]){2, PAIRWISE_LEVELS + 1}, 2, 1));
	assert_false(pairwise_init(&p, (unsigned[]){2, 0}, 2, 1));
	assert_false(pairwise_init(&p, (unsigned[]){5}, 1, 1));
}
