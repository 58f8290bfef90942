/* Runs a plan as the studies run their kernels: no halo around the source, in which coordinates are
 * clamped into a region (`reach`), and both regions anywhere in matrices of any pitch. */
#pragma once

#include "harness.h"

/* True if the plan has no other steps; some of an image with alpha do. */
bool bare_applies(const struct plan *plan);

/* Filters a whole packed image, whose border is replicated or cropped, at once. inside: image and
 * result are parts of larger matrices, and it is made in strips of tile_rows rows, each in two
 * columns. False: bytes outside the result were written. Ends the program if OpenCL fails. */
bool bare_filter(struct harness *h, const struct plan *plan, bool inside, const void *in,
                 uint32_t tile_rows, void *out);
