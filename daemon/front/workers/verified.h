/* The results of comparing tiles with the reference, which codec workers report. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "front/jobs/job.h"
#include "wire/wire.h"

/* A codec worker's tiles on which it may still report, and the devices that filtered them. */
struct verified_tiles {
	struct verified_tile {
		bool known;
		bool out; /* runs again */
		struct tile tile;
		uint32_t run;              /* the last run that came back: 0, 1, 2 */
		bool others;               /* TILE_DONE said that another device can run it */
		unsigned device;           /* the first run's */
		struct kernel_set kernels; /* the first run's */
		bool repeated;             /* the last run used the same device and kernels */
	} tile[SLOTS_MAX];
};

/* Records a tile on its way back from a device, and sets done->others. */
void verified_expect(struct verified_tiles *tiles, const struct task *task,
                     struct message_tile_done *done);

/* The consequences of a comparison. */
struct finding {
	const struct tile *again;  /* the tile to run again (in struct verified_tiles), or NULL */
	uint64_t prefer;           /* devices that should run it, a bit for each */
	unsigned device;           /* the first run's */
	struct kernel_set kernels; /* the first run's */
	bool doubtful;             /* the result differs from the reference */
	bool differs;              /* the device gave two results for one tile */
};

/* Records a comparison in the metrics, the log and the job, and sets *finding. Returns false if the
 * report is impossible. */
bool verified_take(struct verified_tiles *tiles, struct job *job,
                   const struct message_verified *found, struct finding *finding);
