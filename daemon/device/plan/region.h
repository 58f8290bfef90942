/* The regions that a step reads and writes, of a tile. */
#ifndef DEVICE_PLAN_REGION_H
#define DEVICE_PLAN_REGION_H

#include "device/plan/step.h"

/* The points that the columns, or rows, of the tile's result (larger by grow_x, grow_y) are made
 * from. */
struct lattice_span region_points_across(const struct step *step, const struct tile *tile);
struct lattice_span region_points_down(const struct step *step, const struct tile *tile);

/* Columns and rows of the region that the step writes, in pixels or points. */
uint32_t region_columns(const struct step *step, const struct tile *tile);
uint32_t region_rows(const struct step *step, const struct tile *tile);

/* True if the source, or target, is the intermediate of sep_two_pass, which has no place for what
 * lies around. */
bool region_is_transposed(const struct step *step, bool dst);

/* How a step's result lies in a buffer of its own: rows packed from the start such that pixel
 * (x0, y0) is aligned. Returns the bytes that it takes. The buffer is not set. */
uint64_t region_pack(const struct step *step, const struct tile *tile, struct view *view);

/* The bytes of the regions that the step reads and writes, each once. */
uint64_t region_bytes(const struct step *step, const struct tile *tile);

#endif
