/* A plan under construction: each step that is appended reads the result of the one before. */
#ifndef DEVICE_PLAN_BUILDER_H
#define DEVICE_PLAN_BUILDER_H

#include "device/plan/programs.h"
#include "device/plan/step.h"
#include "filters/chain.h"

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

/* The state after the steps so far: where the pixels are, their type, and how far the region still
 * extends beyond the tile (expand_x and expand_y, pixels or points). busy: the place of pixels that
 * a later step still reads. PLACE_IN, which is never overwritten, means none. */
struct builder {
	struct programs *programs;
	const struct chain *chain;
	const struct image *image;
	variant_chooser *choose; /* NULL: the table's choice */
	void *user;
	struct step_list *list;
	enum place at, busy;
	enum pixel_type type;
	bool ycc;
	bool asked; /* a step uses the requested variant */
	uint32_t expand_x, expand_y;
	struct step_points points;
	uint32_t width; /* width of the result, in pixels or points */
};

/* Returns a new step that reads the current pixels and writes pixels of type `to` to a scratch
 * buffer that is not busy; it owns nothing yet. program: the pixel type of the kernel. */
struct step builder_begin_step(const struct builder *builder, enum kernel kernel,
                               enum pixel_type program, enum pixel_type to);

/* Appends a step of a general kernel, complete but for its function. Takes its references over. */
void builder_add_general(struct builder *builder, struct step *step);

/* Appends a filter on pixels of the current type. Uses the requested or chosen kernel, or the
 * general one while that is not compiled. Appends nothing of an operation without a general kernel
 * if no kernel does it, the chain names one of its parts or general ones, or it is not compiled.
 * offset: added to the result, in pixel values; keep, alpha: as in struct work. ERR_MEMORY or
 * ERR_DEVICE. */
enum error builder_add_filter(struct builder *builder, const struct operation *op, double offset,
                              uint32_t keep, uint32_t alpha) MUST_CHECK;

/* Sets what a step of unsharp or a threshold compares with, of an image of this type. */
void builder_set_comparison(struct step *step, const struct operation *op,
                            enum pixel_type image_type);

/* Completes a step whose places, expansion and offset are set. *state: whether its program is
 * ready. The caller releases the step; on failure (ERR_MEMORY, ERR_DEVICE) it is empty. */
enum error builder_make_step(struct programs *programs, const struct work *work, enum kernel kernel,
                             struct shape shape, struct step *step,
                             enum program_state *state) MUST_CHECK;

#endif
