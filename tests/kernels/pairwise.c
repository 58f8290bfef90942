/* Row by row, greedily: a pair that is missing, then factor by factor the level that meets most of
 * the levels so far for the first time; of some rows made so, the best. */
#include "pairwise.h"

#include <string.h>

enum { CANDIDATES = 12, FREE = 0xFF };

struct search {
	const struct pairwise *p;
	uint64_t state;
	/* Which pairs have met: [factor][level][factor][level], both ways. */
	bool met[PAIRWISE_FACTORS][PAIRWISE_LEVELS][PAIRWISE_FACTORS][PAIRWISE_LEVELS];
};

static unsigned below(struct search *s, unsigned n)
{
	s->state = s->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((s->state >> 33) % n);
}

/* Returns the number of the row's levels that this one has not met. */
static unsigned gain(const struct search *s, const uint8_t *row, size_t factor, unsigned level)
{
	unsigned count = 0;

	for (size_t f = 0; f < s->p->factors; f++)
		count += f != factor && row[f] != FREE && !s->met[factor][level][f][row[f]];
	return count;
}

/* Returns the first, from a random one on, of the levels that gain most. */
static unsigned best_level(struct search *s, const uint8_t *row, size_t factor)
{
	const unsigned levels = s->p->levels[factor], first = below(s, levels);
	unsigned best = first;

	for (unsigned i = 1; i < levels; i++)
		if (gain(s, row, factor, (first + i) % levels) > gain(s, row, factor, best))
			best = (first + i) % levels;
	return best;
}

/* Enters the missing pair number `wanted`, and returns how many there are. */
static size_t missing(const struct search *s, size_t wanted, uint8_t *row)
{
	const struct pairwise *p = s->p;
	size_t count = 0;

	for (size_t f = 0; f < p->factors; f++)
		for (size_t g = f + 1; g < p->factors; g++)
			for (unsigned i = 0; i < p->levels[f]; i++)
				for (unsigned k = 0; k < p->levels[g]; k++)
					if (!s->met[f][i][g][k] && count++ == wanted && row) {
						row[f] = (uint8_t)i;
						row[g] = (uint8_t)k;
					}
	return count;
}

/* Makes a row; returns how many pairs meet first in it. */
static unsigned make_row(struct search *s, size_t left, uint8_t *row)
{
	const size_t factors = s->p->factors, first = below(s, (unsigned)factors);
	unsigned gained = 1;

	memset(row, FREE, PAIRWISE_FACTORS);
	missing(s, below(s, (unsigned)left), row);
	for (size_t i = 0; i < factors; i++) {
		size_t f = (first + i) % factors;

		if (row[f] != FREE)
			continue;
		unsigned level = best_level(s, row, f);

		gained += gain(s, row, f, level);
		row[f] = (uint8_t)level;
	}
	return gained;
}

static void meet(struct search *s, const uint8_t *row)
{
	for (size_t f = 0; f < s->p->factors; f++)
		for (size_t g = 0; g < s->p->factors; g++)
			s->met[f][row[f]][g][row[g]] = true;
}

bool pairwise_init(struct pairwise *p, const unsigned *levels, size_t factors, uint64_t seed)
{
	static struct search s;

	memset(&s, 0, sizeof s);
	s.p = p;
	s.state = seed;
	*p = (struct pairwise){.factors = factors};
	if (factors < 2 || factors > PAIRWISE_FACTORS)
		return false;
	for (size_t f = 0; f < factors; f++) {
		p->levels[f] = levels[f];
		if (levels[f] < 1 || levels[f] > PAIRWISE_LEVELS)
			return false;
	}
	for (size_t left; (left = missing(&s, 0, NULL)) > 0;) {
		unsigned most = 0;

		if (p->rows == PAIRWISE_ROWS)
			return false;
		for (int i = 0; i < CANDIDATES; i++) {
			uint8_t row[PAIRWISE_FACTORS];
			unsigned gained = make_row(&s, left, row);

			if (gained > most) {
				most = gained;
				memcpy(p->row[p->rows], row, sizeof row);
			}
		}
		meet(&s, p->row[p->rows++]);
	}
	return true;
}
