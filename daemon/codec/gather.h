/* Gathering: from the result's rows to what a filter must know of all of them. */
#ifndef CODEC_GATHER_H
#define CODEC_GATHER_H

#include "codec/tiles.h"
#include "common/error.h"
#include "common/gather.h"

/* Counts the values of the result's rows, and writes the numbers that the job is to gather to an
 * empty file; waits for tiles and frees their slots. Returns ERR_OK if another thread stopped the
 * job; the reason is in the tiles. */
enum error gather_run(struct tiles *tiles, const struct message_job *job, int file,
                      struct problem *problem) MUST_CHECK;

#endif
