/* One kernel launch: arguments, work size and bytes of a plan's step on a tile. */
#ifndef DEVICE_LAUNCH_H
#define DEVICE_LAUNCH_H

#include "device/plan.h"

/* Pixels in a buffer: `origin` is the bytes from its start to the tile's first pixel (x0, y0). */
struct view {
	cl_mem buffer;
	uint64_t origin;
	uint32_t pitch; /* bytes */
};

/* Enqueues a step; src and dst hold the regions that it reads and writes. The event becomes the
 * caller's. Returns an OpenCL code; on failure nothing is enqueued. */
cl_int launch_step(const struct programs *programs, const struct plan *plan,
                   const struct step *step, const struct tile *tile, cl_command_queue queue,
                   const struct view *src, const struct view *dst, cl_event *event) MUST_CHECK;

/* The bytes of the regions that the step reads and writes, each once. */
uint64_t launch_bytes(const struct plan *plan, const struct step *step, const struct tile *tile);

#endif
