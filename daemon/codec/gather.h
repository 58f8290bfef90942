/* Gathering: from the result's rows to what a filter must know of all of them. */
#ifndef CODEC_GATHER_H
#define CODEC_GATHER_H

#include "base/error.h"
#include "codec/tiles.h"
#include "filters/gather.h"

/* Checks that what must be kept of such a result is within the limits. ERR_TOO_MANY_PIXELS. */
enum error gather_check(const struct message_job *job, const struct tiling *tiling,
                        struct problem *problem) MUST_CHECK;

/* Counts the values of the result's rows, or finds its edges, of each page by itself, and writes
 * the numbers that the job is to gather to an empty file, page after page; waits for tiles and
 * frees their slots. Returns ERR_OK if another thread stopped the job; the reason is in the tiles.
 */
enum error gather_run(struct tiles *tiles, int file, struct problem *problem) MUST_CHECK;

#endif
