/* What the decoding and the encoding side of a job share: the slots that its tiles live in. */
#ifndef CODEC_TILES_H
#define CODEC_TILES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "codec/verify.h"
#include "common/arena.h"
#include "common/error.h"
#include "common/tile.h"
#include "common/wire.h"

struct tiles {
	uint64_t job;
	int socket; /* to the front */
	uint32_t arena_number;
	const struct arena *arena;
	const struct chain *chain;
	struct verify verify;  /* of the encoding side */
	uint64_t reference_ns; /* of the decoding side: processor time of filtering tiles here */
	struct tiling tiling;  /* fixed once tiles_start() has been called */

	/* Below, all is guarded by the lock; `change` is signalled whenever any of it changes. */
	pthread_mutex_t lock;
	pthread_cond_t change;
	uint32_t cut;      /* tiles handed to the front: 0 to cut - 1 */
	uint32_t freed;    /* tiles whose slots the encoder has given back: 0 to freed - 1 */
	uint32_t verified; /* tiles that have been, where they are to be: 0 to verified - 1 */
	uint64_t filtered; /* bit i % (slots * columns): tile i, of those between, has come back */
	bool others;       /* the tile that was run again could be run by another device */
	bool stopped;
	enum error error; /* why it was stopped */
	struct problem problem;
};

/* Prepares for a job; no tile can be cut before tiles_start(). Job, chain and arena stay the
 * caller's. */
void tiles_init(struct tiles *tiles, const struct message_job *job, const struct chain *chain,
                int socket, const struct arena *arena);
void tiles_start(struct tiles *tiles, const struct tiling *tiling);
void tiles_fini(struct tiles *tiles);

/* Ends the job: every wait returns false from now on. The first reason given is kept. The problem
 * is copied; NULL: empty. */
void tiles_stop(struct tiles *tiles, enum error error, const struct problem *problem);
bool tiles_stopped(struct tiles *tiles);

/* Decoding side. Waits until the slot of a strip is free; false if the job was stopped. */
bool tiles_await_slot(struct tiles *tiles, uint32_t strip) MUST_CHECK;
/* Hands tile i, complete in its slot, to the front; or, for VARIANT_REFERENCE, filters it here,
 * after which it has come back. */
enum error tiles_send(struct tiles *tiles, uint32_t i) MUST_CHECK;

/* Socket side. Takes note of a tile that came back. */
void tiles_done(struct tiles *tiles, const struct message_tile_done *done);

/* Encoding side. Waits until the tiles of a strip are filtered and, where they are to be, verified;
 * false if the job was stopped. */
bool tiles_await(struct tiles *tiles, uint32_t strip) MUST_CHECK;
/* Gives back the slots of all strips whose last row is above this row of the result. */
void tiles_free_above(struct tiles *tiles, uint32_t row);

/* The start of a row of a strip's input area: row 0 is the topmost halo row. */
uint8_t *tiles_in_row(const struct tiles *tiles, uint32_t strip, uint32_t row);
/* A row of the whole result, in the output area of its strip. */
const uint8_t *tiles_out_row(const struct tiles *tiles, uint32_t row);

#endif
