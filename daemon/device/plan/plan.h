/* Plans: the kernel launches that filter a tile by a chain, for one kind of image. */
#pragma once

#include "device/plan/programs.h"
#include "device/plan/step.h"
#include "filters/chain_size.h"
#include "wire/tile.h"

/* The maximum number of steps. A filter takes at most ten: to YCbCr, premultiply, shrink (2),
 * filter (2), grow (2), unpremultiply or unsharp, extend. The last filter is followed by a
 * conversion from YCbCr, and by the step that writes only regions. */
enum { STEPS_MAX = 10 * CHAIN_FILTERS_MAX + 2 };
/* A JPEG is decoded, gets a border, and is encoded. */
_Static_assert((int)STEPS_MAX + 3 <= (int)LAUNCHES_MAX, "a message has room for every launch");

/* The steps of a plan, in order. */
struct step_list {
	uint32_t count;
	struct step step[STEPS_MAX];
};

struct plan {
	uint32_t client; /* the client for whom programs are compiled: see programs_for() */
	struct image image;
	struct geometry geometry;
	uint32_t halo_x, halo_y; /* the geometry's */
	uint32_t width;          /* the whole result's */
	struct step_list list;
	struct step border; /* makes the halo of a JPEG's pixels; kernel KERNELS: none needed */
	uint32_t bounded;   /* first steps, whose results are needed in regions alone */
	bool resolved;      /* every step of the list has its kernel */
	bool stacks;        /* launch_can_stack() holds for all of them */
	struct chain chain; /* may be longer than the struct */
};

/* Makes the plan of a valid chain for a valid image. Steps use the variant that the chain names,
 * and wait for its program; or else the kernels that `choose` selects (NULL: the table), and
 * general ones while those are compiled. ERR_BAD_PARAMETER if the border value does not fit the
 * image or the variant can do no step; ERR_MEMORY or ERR_DEVICE. */
enum error plan_new(struct programs *programs, const struct chain *chain, const struct image *image,
                    variant_chooser *choose, void *user, struct plan **plan) MUST_CHECK;

/* Requests, as urgent, programs that the plan lacks for such tiles. PROGRAM_READY if it can run;
 * else *lacks: the kernel that failed, or the first one that is pending. */
enum program_state plan_resolve(struct plan *plan, struct programs *programs, enum tile_form form,
                                enum kernel *lacks) MUST_CHECK;
/* NULL is allowed. The pointer becomes NULL. */
void plan_free(struct plan **plan);

/* Returns true if this tile, of an image that fits the plan, needs the step, one of the list:
 * `extend` is needed only at the image's edge, and outside regions no step before that which keeps
 * the original. */
bool plan_step_needed(const struct plan *plan, const struct step *step, const struct tile *tile);
