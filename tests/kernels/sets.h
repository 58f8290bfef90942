/* Sets of filters, each tried with all kinds of pixels under all circumstances, in pairs. */
#ifndef TESTS_SETS_H
#define TESTS_SETS_H

#include "trial.h"

/* Filters that are tried together: a pair of circumstances meets in one of them. */
struct set {
	const struct group *group;
	size_t count;
};

#define SET(array)                                                                                 \
	{                                                                                          \
		array, sizeof array / sizeof *array                                                \
	}

/* The outcome of trials: failed and passed, and the types and borders that met. */
struct tally {
	int counts[2];
	bool met[PIXEL_TYPES][BORDERS];
};

/* Runs a trial and adds to the tally. */
void tally_trial(struct tally *tally, struct harness *h, const struct trial *trial);

/* Tries a set by the general kernels, or by one that has no program of its own for each kind of
 * work: variant as in struct trial. */
void set_try(struct harness *h, const struct set *set, uint32_t variant, struct tally *tally);

/* Prints a set's line. */
void tally_print(const struct tally *tally, size_t number, const char *name, int totals[2]);

#endif
