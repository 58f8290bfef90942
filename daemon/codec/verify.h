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

/* What verification wants of its caller, who knows the slots. */
struct verify_owner {
	/* Asked now and then; once it is true the rest is left out. */
	bool (*stopped)(void *context);
	/* Sends MSG_VERIFIED, upon which the front has the tile run again into its slot, and waits
	 * until it is back: *others is then set if another device could run it as well. False if
	 * the job was stopped. */
	bool (*again)(void *context, const struct message *verified, bool *others);
};

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
 * sends MSG_VERIFIED. What is not as it should be runs again; what then differs from run to run, or
 * was to be verified whole and stays as it is, the reference computes into the slot. Failures are
 * logged and have no other effect. */
void verify_tile(struct verify *verify, const struct tiling *tiling, uint32_t index,
                 const struct verify_owner *owner, void *context);

#endif
