/* The results of codec workers' comparisons of tiles with the reference. */
#ifndef FRONT_WORKERS_VERIFIED_H
#define FRONT_WORKERS_VERIFIED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire.h"
#include "front/jobs/job.h"

/* Who filtered the tiles that a codec worker still holds: it may yet say what it found in them. */
struct verified_tiles {
	struct verified_tile {
		bool known;
		bool out; /* to be run again */
		struct tile tile;
		uint32_t run;     /* that came back last: 0, 1, 2 */
		bool others;      /* as the codec worker was told: another device could run it */
		unsigned device;  /* that ran it first */
		uint64_t kernels; /* bit of each that did */
		bool repeated;    /* the last run was by that device and by those kernels */
	} tile[SLOTS_MAX];
};

/* Records a tile on its way back from a device, and sets done->others. */
void verified_expect(struct verified_tiles *tiles, const struct task *task,
                     struct message_tile_done *done);

/* The consequences of a comparison. */
struct finding {
	const struct tile
	    *again;       /* is to run once more, NULL: is not; the struct verified_tiles' */
	uint64_t prefer;  /* by one of these devices if possible */
	unsigned device;  /* that ran it first: */
	uint64_t kernels; /* by these, a bit of each; */
	bool doubtful;    /* and may be wrong, or can do no better */
	bool differs;     /* and gave two results for one tile */
};

/* Books what was found to the metrics, the log and the job. False if it cannot be true. */
bool verified_take(struct verified_tiles *tiles, struct job *job,
                   const struct message_verified *found, struct finding *finding);

#endif
