/* The regions that a step reads and writes, of a tile. */
#ifndef DEVICE_PLAN_REGION_H
#define DEVICE_PLAN_REGION_H

#include "device/plan/step.h"

/* The points that the columns, or rows, of the tile's result (larger by grow_x, grow_y) are made
 * from. */
struct lattice_span step_points_across(const struct step *step, const struct tile *tile);
struct lattice_span step_points_down(const struct step *step, const struct tile *tile);

/* Columns and rows of the region that the step writes, in pixels or points. */
uint32_t step_columns(const struct step *step, const struct tile *tile);
uint32_t step_rows(const struct step *step, const struct tile *tile);

/* True if the source, or target, is the intermediate of sep_two_pass, which has no place for what
 * lies around. */
bool step_is_transposed(const struct step *step, bool dst);

#endif
