/* Comparing tiles with the reference, here, where no driver has a say: all of them if the request
 * asks for it, else windows of a few. */
#ifndef CODEC_VERIFY_H
#define CODEC_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/chain.h"
#include "common/tile.h"
#include "common/wire.h"

struct verify {
	const struct message_job *job;
	const struct chain *chain;
	const struct arena *arena;
	int socket;      /* to the front */
	uint64_t random; /* state of the choice of tiles and windows */
	uint64_t busy_ns;
};

/* Job, chain and arena stay the caller's. */
void verify_init(struct verify *verify, const struct message_job *job, const struct chain *chain,
                 const struct arena *arena, int socket);

/* Compares a tile that a device has filtered, if it is to be (of VARIANT_REFERENCE none is), and
 * sends MSG_VERIFIED. `stopped` is
 * asked now and then; once it is true the rest is left out. Its failures are logged and have no
 * other effect. */
void verify_tile(struct verify *verify, const struct tiling *tiling, uint32_t index,
                 bool (*stopped)(void *context), void *context);

#endif
