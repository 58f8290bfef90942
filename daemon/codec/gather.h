/* Gathering: from the result's rows to what a filter must know of all of them. */
#ifndef CODEC_GATHER_H
#define CODEC_GATHER_H

#include "codec/tiles.h"
#include "common/error.h"
#include "common/gather.h"

/* True if the points of grids for so many such images are within the limits. */
bool gather_grid_fits(const double sigma[GRID_AXES], const struct image *image, uint32_t pages,
                      uint64_t buffered_size_max);

/* Checks that what must be kept of such a result is within the limits. ERR_TOO_MANY_PIXELS. */
enum error gather_check(const struct message_job *job, const struct tiling *tiling,
                        struct problem *problem) MUST_CHECK;

/* Counts the values of the result's rows, finds its edges, or shrinks it to the points of a grid,
 * of each page by itself, and writes the numbers that the job is to gather to an empty file, page
 * after page; waits for tiles and frees their slots. border_pixel: chain_border_pixel()'s. Returns
 * ERR_OK if another thread stopped the job; the reason is in the tiles. */
enum error gather_run(struct tiles *tiles, const struct message_job *job, enum border border,
                      const double border_pixel[BANDS_MAX], int file,
                      struct problem *problem) MUST_CHECK;

#endif
