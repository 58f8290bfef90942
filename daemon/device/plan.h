/* The plan: a chain of filters worked out, for one kind of image, as a list of kernel launches that
 * every tile of a job goes through. */
#ifndef DEVICE_PLAN_H
#define DEVICE_PLAN_H

#include "common/chain.h"
#include "common/tile.h"
#include "device/program.h"

/* Where a launch reads and writes: the tile's slot, or one of the lane's two scratch buffers. */
enum place { PLACE_IN, PLACE_OUT, PLACE_A, PLACE_B, PLACES };

/* One launch. Its target region is the tile's result, larger by expand_x and expand_y pixels on
 * each side: by what the filters after it reach. */
struct step {
	enum kernel kernel;
	enum pixel_type program; /* which program's */
	enum place src, dst;     /* equal for KERNEL_EXTEND, which works in place */
	enum pixel_type src_type, dst_type;
	uint32_t expand_x, expand_y;
	uint32_t radius_x, radius_y;
	cl_mem weights; /* NULL where the kernel takes none */
	float smooth[3];
	uint32_t output; /* enum gradient_output */
	double offset;
	bool keep_alpha;
};

enum { STEPS_MAX = 5 * CHAIN_FILTERS_MAX };
_Static_assert((int)STEPS_MAX <= (int)LAUNCHES_MAX, "a message has room for every launch");

struct plan {
	struct image image;
	struct chain chain;
	uint32_t halo_x, halo_y;
	float border_pixel[BANDS_MAX];
	uint32_t count;
	struct step step[STEPS_MAX];
};

/* Works a valid chain out for a valid image. ERR_BAD_PARAMETER if its border value does not fit the
 * image, ERR_MEMORY, or ERR_DEVICE if the device has no room for the weights. */
enum error plan_new(const struct programs *programs, const struct chain *chain,
                    const struct image *image, struct plan **plan) MUST_CHECK;
/* NULL is allowed. The pointer becomes NULL. */
void plan_free(struct plan **plan);

/* True if the tile, of a plan whose image it fits, needs this step. */
bool plan_step_needed(const struct plan *plan, const struct step *step, const struct tile *tile);

#endif
