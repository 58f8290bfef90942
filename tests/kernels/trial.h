/* One random image through one plan, compared with the reference. */
#ifndef TESTS_TRIAL_H
#define TESTS_TRIAL_H

#include "harness.h"

struct group {
	const char *name;
	const char *chain; /* and "&regions=…&feather=N&invert=1" */
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

/* Every count-th from the index-th on. */
struct share {
	unsigned index, count;
};

/* The state of random_below(), a bound on images' samples, of how many trials one is made, and
 * whether tiles are always copied. */
extern uint64_t trial_seed;
extern double trial_samples_most;
extern int trial_every;
extern bool trial_only_copy;

uint32_t random_below(uint32_t n);

/* The kinds of pixels: bands, alpha, and the channels that are filtered. */
enum kind {
	PIXELS_GREY,
	PIXELS_TWO,
	PIXELS_RGB,
	PIXELS_CMYK,
	PIXELS_GREEN, /* bands of RGB */
	PIXELS_GREY_ALPHA,
	PIXELS_RGB_ALPHA,
	PIXELS_RGB_ALPHA_COLOR,
	KINDS,
	KINDS_OPAQUE = PIXELS_GREY_ALPHA
};

void trial_set_kind(struct trial *trial, enum kind kind);

/* Other conditions of a trial: border, shape of the result, rows a tile, mode. */
enum { CIRCUMSTANCES = 4 };

extern const unsigned circumstance_levels[CIRCUMSTANCES];

/* The result gets the shape whatever the border is: with crop the image is larger by the window. It
 * has at least so many columns. The filter, type and kind are given. */
void trial_set_circumstances(struct trial *trial, const uint8_t *levels, uint32_t least);

/* Tells whether the trial's variant does some step of it. */
bool trial_applies(struct harness *h, const struct trial *trial);

/* Asks for the programs of a trial's plan, without running it. */
void trial_prepare(struct harness *h, const struct trial *trial);

/* Runs a trial: 1 if it passed, 0 if not (said on standard output), -1 if there is nothing to do.
 */
int trial_run(struct harness *h, const struct trial *trial);

/* Returns the result of a trial's plan for its image, by the kernels of `variant` (as in a chain),
 * in tiles of this height and by either mode; NULL if there is nothing to do. By the filters alone:
 * by a plan for each. *size: in bytes. The caller frees it. */
void *trial_make(struct harness *h, const struct trial *t, uint32_t variant, uint32_t tile_rows,
                 bool alone, size_t *size);

/* Negative weights can leave next to no alpha to divide by; that case has no stable answer. */
bool group_alpha_is_stable(const struct group *group);

#endif
