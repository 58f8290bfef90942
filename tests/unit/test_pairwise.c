/* The cover of pairs that test_kernels chooses its trials by, held against all pairs there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pairwise.h"

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

static void every_pair_meets(void **state)
{
	static struct pairwise p;

	(void)state;
	for (size_t i = 0; i < SETS; i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			assert_true(pairwise_init(&p, sets[i].levels, sets[i].factors, seed));
			check_levels(&p, sets[i].levels);
			check_pairs(&p, sets[i].levels);
			assert_in_range(p.rows, 1, sets[i].rows_most);
		}
}

static void a_seed_decides(void **state)
{
	static struct pairwise a, b;
	static const unsigned levels[] = {3, 8, 6};

	(void)state;
	assert_true(pairwise_init(&a, levels, 3, 7));
	assert_true(pairwise_init(&b, levels, 3, 7));
	assert_memory_equal(&a, &b, sizeof a);
	assert_true(pairwise_init(&b, levels, 3, 8));
	assert_memory_not_equal(a.row, b.row, sizeof a.row);
}

static void what_is_too_much_is_refused(void **state)
{
	static struct pairwise p;
	static const unsigned many[PAIRWISE_FACTORS + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};

	(void)state;
	assert_false(pairwise_init(&p, many, PAIRWISE_FACTORS + 1, 1));
	assert_false(pairwise_init(&p, (unsigned[]){2, PAIRWISE_LEVELS + 1}, 2, 1));
	assert_false(pairwise_init(&p, (unsigned[]){2, 0}, 2, 1));
	assert_false(pairwise_init(&p, (unsigned[]){5}, 1, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_pair_meets),
	    cmocka_unit_test(a_seed_decides),
	    cmocka_unit_test(what_is_too_much_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
