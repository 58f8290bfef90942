/* Kernel launches: enqueueing a step for a tile or a stack of tiles. */
#ifndef DEVICE_PLAN_LAUNCH_H
#define DEVICE_PLAN_LAUNCH_H

#include "device/plan/step.h"

enum { PIECES_MAX = 256 }; /* pieces per launch */

/* True if a stack can go through this step as one high tile: its result does not depend on a row's
 * position in the image. */
bool launch_can_stack(const struct step *step);

/* Enqueues a step for a tile. With a stack, `tile` is as high as the whole stack. views[] holds the
 * places that the step reads and writes. The caller releases the event. Returns an OpenCL code; on
 * failure nothing is enqueued. */
cl_int launch_step(const struct step *step, const struct device *device, const struct tile *tile,
                   const struct stack *stack, cl_command_queue queue,
                   const struct view views[PLACES], cl_event *event) MUST_CHECK;

/* Like launch_step(), but in pieces with an event each. A CPU runs one kernel at a time; with
 * pieces, kernels of other tiles run in between and are not held up. On a GPU, which runs several
 * queues at once, there is one piece. On failure the first *count pieces are enqueued. */
cl_int launch_step_pieces(const struct step *step, const struct device *device,
                          const struct tile *tile, const struct stack *stack,
                          cl_command_queue queue, const struct view views[PLACES],
                          cl_event events[PIECES_MAX], uint32_t *count) MUST_CHECK;

#endif
