/* The step: one kernel launch of a plan, with everything that it needs but the tile. */
#ifndef DEVICE_PLAN_STEP_H
#define DEVICE_PLAN_STEP_H

#include "common/filters.h"
#include "common/tile.h"
#include "device/plan/variant.h"

/* Where a launch reads and writes: the tile's slot, or one of the lane's scratch buffers. */
enum place { PLACE_IN, PLACE_OUT, PLACE_A, PLACE_B, PLACE_C, PLACES };
enum { SCRATCHES = PLACES - PLACE_A };

/* On the way to a lattice and back. Where across (down) is set, the target region's columns (rows)
 * are the points that the tile's result, larger by grow_x and grow_y pixels on each side, is made
 * from, and the step's expand_x (expand_y) is in points. */
struct step_points {
	struct lattice lattice;
	uint32_t grow_x, grow_y;
	bool across, down;
};

/* One launch. Its target region is the tile's result, larger by expand_x and expand_y pixels on
 * each side: by what the filters after it reach. Fields that the kernel takes no heed of are 0. */
struct step {
	enum kernel kernel;
	struct shape shape;
	enum pixel_type program; /* the type that PIXEL is in its program */
	cl_kernel function;      /* retained; NULL until its program is built */
	enum place src, dst;     /* equal for KERNEL_EXTEND, which works in place */
	enum place original;     /* where the pixels are that were blurred, or that `keep` means */
	enum pixel_type src_type, dst_type, original_type;
	uint32_t bands;
	uint32_t expand_x, expand_y;
	uint32_t radius_x, radius_y;
	cl_mem weights; /* retained; NULL where the kernel takes none */
	uint32_t keep;  /* bit b: band b stays as it is */
	uint32_t alpha; /* the last band is alpha */
	double offset;
	float scale;             /* direction of a gradient: pixel values a radian */
	float smooth[3];         /* gradient */
	uint32_t output;         /* enum gradient_output */
	float space, range;      /* bilateral: exponents of 2 */
	float amount, threshold; /* unsharp; threshold in pixel values */
	struct {
		uint32_t mode, image_width, image_height;
		float pixel[BANDS_MAX];
	} border; /* extend */
	struct step_points points;
	uint32_t pass; /* sep_two_pass: 0 writes its result transposed, 1 reads that */
	/* What a classic kernel may read: pixels relative to the region's first, all inclusive.
	 * NULL: the region and the radius around it. */
	const cl_int4 *reach;
};

/* Pixels in a buffer: `origin` is the bytes from its start to the tile's first pixel (x0, y0), or
 * where columns (rows) are points of a lattice, to the first that the tile is made from. */
struct view {
	cl_mem buffer;
	uint64_t origin;
	uint32_t pitch; /* bytes */
};

/* Tiles of one plan, of one width and height, that lie one below another in every place: the first
 * rows of neighbours are `distance` rows apart, so far that no region meets the next one's. For a
 * kernel that is one high tile. NULL where a function takes it: a tile alone. */
struct stack {
	uint32_t count, distance;
	uint32_t height;        /* of each tile */
	uint32_t y0[STACK_MAX]; /* where each lies in the filtered image */
};

/* Another hold on its kernel alone. */
void step_retain_kernel(const struct step *step);

/* Another hold on what a step holds; step_release() lets go of it and empties the step. */
void step_retain(const struct step *step);
void step_release(struct step *step);

#endif
