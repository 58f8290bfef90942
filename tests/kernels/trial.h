/* One random image through one plan, compared with the reference. */
#pragma once

#include "harness.h"

struct group {
	const char *name;
	const char *chain; /* for harness_parse() */
};

/* A plan runs by a lane, or bare, which only published kernels can. */
enum { MODE_BARE = LANE_MODES, MODE_BARE_INSIDE, TRIAL_MODES };

/* Everything that can be varied. */
struct trial {
	const struct group *group;
	struct image image;
	enum border border;
	uint32_t tile_rows;
	int mode;          /* enum lane_mode, or MODE_… */
	uint32_t variant;  /* as in a chain: enum kernel + 1; 0: the general kernels */
	uint32_t channels; /* enum channels, of the first filter */
};

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
enum { BORDER, SHAPE, ROWS, MODE, CIRCUMSTANCES };

/* The number of levels that each has for a variant. */
void trial_circumstances(uint32_t variant, unsigned levels[CIRCUMSTANCES]);

/* The result gets the shape whatever the border is: with crop the image is larger by the window.
 * Group, variant, type and kind are given. */
void trial_set_circumstances(struct trial *trial, const uint8_t *levels);

/* True if the trial's variant does some step of it. Asks for the programs of its plan, unless that
 * is all that is wanted. */
bool trial_plan(struct harness *h, const struct trial *trial, bool only_ask);

/* Runs a trial. False if there is nothing to do. */
bool trial_run(struct harness *h, const struct trial *trial);

/* Returns the result of a trial's plan for its image, by the kernels of `variant` (as in a chain),
 * in tiles of this height and by either lane; NULL if there is nothing to do. By the filters alone:
 * by a plan for each. *size: in bytes. The caller frees it. */
void *trial_make(struct harness *h, const struct trial *t, uint32_t variant, uint32_t tile_rows,
                 bool alone, size_t *size);

/* Negative weights can leave next to no alpha to divide by; that case has no stable answer. */
bool group_alpha_is_stable(const struct group *group);
