/* A test tile: what a device that was quarantined must filter rightly before it gets a client's. */
#ifndef FRONT_PROOF_H
#define FRONT_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire.h"
#include "front/supervisor.h"

/* The tile in an arena of its own, numbered PROOF_ARENA, and what must come of it. */
struct proof;

enum { PROOF_ARENA = 1000 };

/* NULL without memory or descriptors. */
struct proof *proof_new(void);
void proof_free(struct proof **proof);

/* Gives the tile to a device that is up and has not had it since its start. False if the device
 * failed on that. */
bool proof_send(struct proof *proof, struct worker *worker);

/* loop_now() when it was sent. */
uint64_t proof_sent(const struct proof *proof);

/* True if this is the tile's answer and the result is right; logs why not. */
bool proof_holds(const struct proof *proof, const struct message_tile_done *done);

#endif
