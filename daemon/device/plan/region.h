/* The regions of a tile that a step reads and writes. */
#ifndef DEVICE_PLAN_REGION_H
#define DEVICE_PLAN_REGION_H

#include "device/plan/step.h"

/* The lattice points that determine the columns, or rows, of the tile's result, expanded by grow_x
 * and grow_y. */
struct lattice_span region_points_across(const struct step *step, const struct tile *tile);
struct lattice_span region_points_down(const struct step *step, const struct tile *tile);

/* Columns and rows of the region that the step writes, in pixels or points. */
uint32_t region_columns(const struct step *step, const struct tile *tile);
uint32_t region_rows(const struct step *step, const struct tile *tile);

/* True if the step's source (or target: dst) is the transposed intermediate of sep_two_pass. */
bool region_is_transposed(const struct step *step, bool dst);

/* Lays out the step's result in a buffer of its own: rows are packed so that pixel (x0, y0) is
 * aligned. Sets the view's origin and pitch, not its buffer. Returns the size in bytes. */
uint64_t region_pack(const struct step *step, const struct tile *tile, struct view *view);

/* Bytes of the regions that the step reads and writes, each counted once. */
uint64_t region_bytes(const struct step *step, const struct tile *tile);

#endif
