/* Computes the reference of a tile, piece by piece: to use it as the result, or to compare a
 * device's with it. That is done here, where no driver has influence: for all tiles if the request
 * asks for it, otherwise for windows of a few. */
#ifndef CODEC_VERIFY_H
#define CODEC_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "filters/chain.h"
#include "wire/arena.h"
#include "wire/tile.h"
#include "wire/wire.h"

/* A tile in its slot. The caller owns all pointers. */
struct tile_source {
	const struct chain *chain;
	const struct arena *arena;
	const struct tiling *tiling;
	const struct tile *tile;
};

/* Computes the tile by the reference into its output area, in windows that bound its memory. Calls
 * `stopped` before each window; once that is true, leaves out the rest. */
enum error verify_fill_tile(const struct tile_source *source, bool (*stopped)(void *context),
                            void *context) MUST_CHECK;

/* Services of the caller, who knows the slots. */
struct verify_owner {
	/* Called repeatedly; once it returns true, the rest is left out. */
	bool (*stopped)(void *context);
	/* Sends MSG_VERIFIED, whereupon the front has the tile run again into its slot, and waits
	 * until it is back; *others says whether another device could run it as well. False if the
	 * job was stopped. */
	bool (*again)(void *context, const struct message *verified, bool *others);
};

struct verify {
	const struct message_job *job;
	const struct chain *chain;
	const struct arena *arena;
	int socket;      /* socket to the front */
	uint64_t random; /* state of the random choice of tiles and windows */
	uint64_t busy_ns;
};

/* The caller keeps job, chain and arena. */
void verify_init(struct verify *verify, const struct message_job *job, const struct chain *chain,
                 const struct arena *arena, int socket);

/* True for the share of tiles that are to be compared. */
bool verify_chosen(struct verify *verify);

/* Compares a filtered tile if it is chosen (never for VARIANT_REFERENCE), and sends MSG_VERIFIED. A
 * tile with mismatches runs again; if its results differ between runs, or complete verification
 * still finds mismatches, the reference's result replaces them in the slot. Failures are logged and
 * have no other effect. */
void verify_tile(struct verify *verify, const struct tiling *tiling, uint32_t index,
                 const struct verify_owner *owner, void *context);

#endif
