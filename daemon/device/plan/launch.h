/* Kernel launches: a step, on a tile or a stack of them, into a queue. */
#ifndef DEVICE_PLAN_LAUNCH_H
#define DEVICE_PLAN_LAUNCH_H

#include "device/plan/step.h"

enum { PIECES_MAX = 256 }; /* of a launch */

/* True if a stack can go through this step: it does not depend on where a row lies in the image. */
bool launch_can_stack(const struct step *step);

/* Enqueues a step on a tile (of a stack: as high as all of it); views[] has the places that it
 * reads and writes. The event becomes the caller's. Returns an OpenCL code; on failure nothing is
 * enqueued. */
cl_int launch_step(const struct step *step, const struct device *device, const struct tile *tile,
                   const struct stack *stack, cl_command_queue queue,
                   const struct view views[PLACES], cl_event *event) MUST_CHECK;

/* The same in pieces, one below another, each with an event: a CPU runs one kernel at a time, so a
 * long one would hold up those of other tiles, which now come between its pieces. A GPU shares
 * itself among queues: there all is one piece. On failure those of `count` are enqueued. */
cl_int launch_step_pieces(const struct step *step, const struct device *device,
                          const struct tile *tile, const struct stack *stack,
                          cl_command_queue queue, const struct view views[PLACES],
                          cl_event events[PIECES_MAX], uint32_t *count) MUST_CHECK;

#endif
