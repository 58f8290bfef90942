/* Kernel launches: enqueueing a step for a tile or a stack of tiles. */
#pragma once

#include "device/plan/step.h"

/* True if a stack can pass this step as one high tile, wherever its rows are in the image. */
bool launch_can_stack(const struct step *step);

/* Enqueues a step for a tile. With a stack, `tile` is as high as the whole stack. views[] holds the
 * buffers that the step reads and writes. The caller releases the event, which is the kernel's:
 * copies may follow on its queue. Returns an OpenCL code; on failure nothing is enqueued. */
cl_int launch_step(const struct step *step, const struct device *device, const struct tile *tile,
                   const struct stack *stack, cl_command_queue queue,
                   const struct view views[PLACES], cl_event *event) MUST_CHECK;

/* A step to be enqueued in pieces, each once, by any threads. Refers to what it was made from. */
struct launch {
	struct step step; /* with the kernel that has the arguments */
	const struct device *device;
	const struct tile *tile;
	const struct view *views;
	size_t groups[2], pieces[2];
};

/* Prepares a launch of a step on `kernel`, a copy of the step's that nothing else uses before the
 * last piece has finished: as one piece, or as several that delay no other work for long, and at
 * least `threads` if they are worth it. Returns an OpenCL code. */
cl_int launch_prepare(const struct step *step, cl_kernel kernel, const struct device *device,
                      const struct tile *tile, const struct view views[PLACES], uint32_t threads,
                      struct launch *launch) MUST_CHECK;
/* The largest side of a piece's grid, in work-items; UINT32_MAX: it is not known. */
uint32_t launch_side(const struct launch *launch, uint32_t piece);
/* Enqueues a piece, as launch_step() does the whole. Returns an OpenCL code. */
cl_int launch_piece(const struct launch *launch, uint32_t piece, cl_command_queue queue,
                    cl_event *event) MUST_CHECK;
