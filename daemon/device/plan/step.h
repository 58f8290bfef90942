/* The step: one kernel launch of a plan, with everything that it needs but the tile. */
#ifndef DEVICE_PLAN_STEP_H
#define DEVICE_PLAN_STEP_H

#include "common/filters.h"
#include "common/tile.h"
#include "device/plan/variant.h"

/* Where a launch reads and writes: the tile's slot, or one of the lane's scratch buffers. */
enum place { PLACE_IN, PLACE_OUT, PLACE_A, PLACE_B, PLACE_C, PLACES };
enum { SCRATCHES = PLACES - PLACE_A };

enum { PIECES_MAX = 256 }; /* of a launch */

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

/* How a step's result lies in a buffer of its own: rows packed from the start such that pixel
 * (x0, y0) is aligned. Returns the bytes that it takes. The buffer is not set. */
uint64_t step_pack(const struct step *step, const struct tile *tile, struct view *view);

/* True if a stack can go through this step: it does not depend on where a row lies in the image. */
bool step_stacks(const struct step *step);

/* Enqueues a step on a tile (of a stack: as high as all of it); views[] has the places that it
 * reads and writes. The event becomes the caller's. Returns an OpenCL code; on failure nothing is
 * enqueued. */
cl_int step_launch(const struct step *step, const struct device *device, const struct tile *tile,
                   const struct stack *stack, cl_command_queue queue,
                   const struct view views[PLACES], cl_event *event) MUST_CHECK;

/* The same in pieces, one below another, each with an event: a CPU runs one kernel at a time, so a
 * long one would hold up those of other tiles, which now come between its pieces. A GPU shares
 * itself among queues: there all is one piece. On failure those of `count` are enqueued. */
cl_int step_launch_pieces(const struct step *step, const struct device *device,
                          const struct tile *tile, const struct stack *stack,
                          cl_command_queue queue, const struct view views[PLACES],
                          cl_event events[PIECES_MAX], uint32_t *count) MUST_CHECK;

/* The bytes of the regions that the step reads and writes, each once. */
uint64_t step_bytes(const struct step *step, const struct tile *tile);

/* Another hold on its kernel alone. */
void step_retain_kernel(const struct step *step);

/* Another hold on what a step holds; step_release() lets go of it and empties the step. */
void step_retain(const struct step *step);
void step_release(struct step *step);

#endif
