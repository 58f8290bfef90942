/* Sets of filters, each tried with all kinds of pixels under all circumstances, in pairs. */
#pragma once

#include "filters/operations.h"
#include "trial.h"

/* Filters that are tried together: a pair of circumstances meets in one of them. Those of an
 * operation are for all kernels that do it; those of none (OPERATIONS) for general kernels. */
struct set {
	const char *name;
	enum operation_kind operation;
	const struct group *group;
	size_t count;
};

extern struct set sets[];
extern const size_t sets_count;

/* Makes the sets complete; first of all. */
void sets_init(void);

/* The trials of a test, in all and with each type. */
struct tally {
	unsigned trials, of_type[PIXEL_TYPES];
};

/* Runs a trial and adds to the tally. */
void tally_trial(struct tally *tally, struct harness *h, const struct trial *trial);

/* Tries a set by the general kernels that a plan takes, or by a variant without a program for each
 * kind of work: as in struct trial. */
void set_try(struct harness *h, const struct set *set, uint32_t variant, struct tally *tally);
