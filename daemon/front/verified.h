/* What the codec workers find when they compare tiles with the reference. */
#ifndef FRONT_VERIFIED_H
#define FRONT_VERIFIED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire.h"
#include "front/job.h"

/* Who filtered the tiles that a codec worker still holds: it may yet say what it found in them. */
struct verified_tiles {
	struct {
		bool known;
		uint32_t index;
		unsigned device;
		uint64_t kernels; /* bit of each */
	} tile[SLOTS_MAX];
};

/* Notes a tile on its way back from a device. */
void verified_expect(struct verified_tiles *tiles, const struct task *task,
                     const struct message_tile_done *done);

/* Books what was found to the metrics, the log and the job. *device: who filtered the tile. False
 * if it cannot be true. */
bool verified_take(struct verified_tiles *tiles, struct job *job,
                   const struct message_verified *found, unsigned *device);

#endif
