/* The plan: a chain of filters worked out, for one kind of image, as a list of kernel launches that
 * every tile of a job goes through. */
#ifndef DEVICE_PLAN_PLAN_H
#define DEVICE_PLAN_PLAN_H

#include "common/chain.h"
#include "common/tile.h"
#include "device/plan/builder.h"

struct plan {
	uint32_t client; /* for programs_for() when it is resolved */
	struct image image;
	struct chain chain;
	uint32_t halo_x, halo_y;
	double border_pixel[BANDS_MAX]; /* see chain_border_pixel() */
	struct step_list list;
	bool resolved; /* every step has its function */
	bool stacks;   /* launch_can_stack() holds for all of them */
};

/* Works a valid chain out for a valid image. Kernels are chosen by the chain's variant where it has
 * one (and such steps wait for their programs), else by `choose`, or the best by table where that
 * is NULL; while a chosen program is not compiled yet, the general kernel stands in.
 * ERR_BAD_PARAMETER if the border value does not fit the image or the variant does no step of it,
 * ERR_MEMORY, or ERR_DEVICE. */
enum error plan_new(struct programs *programs, const struct chain *chain, const struct image *image,
                    variant_chooser *choose, void *user, struct plan **plan) MUST_CHECK;

/* Gets what programs a plan still waits for. PROGRAM_READY once it can be run. */
enum program_state plan_resolve(struct plan *plan, struct programs *programs) MUST_CHECK;
/* The same, but waits for them: never PROGRAM_PENDING. */
enum program_state plan_await(struct plan *plan, struct programs *programs) MUST_CHECK;
/* The first kernel that it still waits for, or KERNELS. */
enum kernel plan_lacks(const struct plan *plan);
/* NULL is allowed. The pointer becomes NULL. */
void plan_free(struct plan **plan);

/* True if the tile, of a plan whose image it fits, needs this step. */
bool plan_step_needed(const struct plan *plan, const struct step *step, const struct tile *tile);

#endif
