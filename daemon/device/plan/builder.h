/* A plan in the making: its steps are appended one after another, each on the pixels that the one
 * before has made. */
#ifndef DEVICE_PLAN_BUILDER_H
#define DEVICE_PLAN_BUILDER_H

#include "common/chain.h"
#include "device/plan/programs.h"
#include "device/plan/step.h"

/* A filter takes at most ten: to YCbCr, premultiply, down to the lattice (2), filter (2), back (2),
 * unpremultiply or unsharp, extend; and at the end there is a from YCbCr. */
enum { STEPS_MAX = 10 * CHAIN_FILTERS_MAX + 1 };
_Static_assert((int)STEPS_MAX <= (int)LAUNCHES_MAX, "a message has room for every launch");

/* Every step that a chain needs, in order. */
struct step_list {
	uint32_t count;
	struct step step[STEPS_MAX];
};

/* What the pixels are and where, and what is still to be added around them. busy: where pixels are
 * that are still needed; PLACE_IN, which always stays: nowhere else. */
struct builder {
	struct programs *programs;
	const struct chain *chain;
	const struct image *image;
	variant_chooser *choose; /* NULL: the best by table */
	void *user;
	struct step_list *list;
	enum place at, busy;
	enum pixel_type type;
	bool ycc;
	bool asked; /* a step is done by the variant that was asked for */
	uint32_t expand_x, expand_y;
	struct step_points points;
	uint32_t width; /* of the result, in pixels or points */
};

/* Begins a step from where the pixels are to a scratch buffer that is not busy, as pixels of a
 * type. It holds nothing yet. */
struct step builder_begin_step(const struct builder *builder, enum kernel kernel,
                               enum pixel_type program, enum pixel_type to);

/* Appends a step of a general kernel, complete but for its function; the list then holds it. */
void builder_add_general(struct builder *builder, struct step *step);

/* Appends the filter itself, on pixels of the type that they have now: by the kernel that the chain
 * asks for or that is chosen, or the general one while that is not compiled. offset: is added to
 * the result; keep, alpha: as in struct work. ERR_MEMORY or ERR_DEVICE. */
enum error builder_add_filter(struct builder *builder, const struct operation *op, double offset,
                              uint32_t keep, uint32_t alpha) MUST_CHECK;

/* Completes a step whose places, expansion and offset are set, to do a piece of work with one
 * kernel. On failure (ERR_MEMORY, ERR_DEVICE) the step is empty; else it is the caller's, and
 * *state says whether its program is there. */
enum error builder_make_step(struct programs *programs, const struct work *work, enum kernel kernel,
                             struct shape shape, struct step *step,
                             enum program_state *state) MUST_CHECK;

#endif
