/* One random image through one plan, compared with the reference. */
#ifndef TESTS_TRIAL_H
#define TESTS_TRIAL_H

#include "harness.h"

struct group {
	const char *name;
	const char *chain;
	double samples_most; /* of an image, so that the reference takes no longer than the rest */
};

/* Everything that can be varied. */
struct trial {
	const struct group *group;
	struct image image;
	enum border border;
	uint32_t tile_rows;
	enum lane_mode mode;
	uint32_t variant;  /* as in a chain: enum kernel + 1; 0: the general kernels */
	uint32_t channels; /* enum channels, of the first filter */
};

/* The state of random_below(), a bound on images' samples, of how many trials one is made, and
 * whether tiles are always copied. */
/* Every count-th from the index-th on. */
struct share {
	unsigned index, count;
};

extern uint64_t trial_seed;
extern double trial_samples_most;
extern int trial_every;
extern bool trial_only_copy;

uint32_t random_below(uint32_t n);

/* Chooses a size (of at least so many pixels, and `extra` more on each side), rows a tile and a
 * mode at random. */
void trial_choose(struct trial *trial, uint32_t least, uint32_t extra);

/* Asks for the programs of a trial's plan, without running it; false if the variant does not do it.
 */
bool trial_prepare(struct harness *h, const struct trial *trial);

/* Runs a trial: 1 if it passed, 0 if not (said on standard output), -1 if there is nothing to do.
 */
int trial_run(struct harness *h, const struct trial *trial);

/* Negative weights can leave next to no alpha to divide by; that case has no stable answer. */
bool group_alpha_is_stable(const struct group *group);

#endif
