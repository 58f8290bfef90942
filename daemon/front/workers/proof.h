/* Test tiles: what a device must filter rightly to be trusted. Their pixels are of our own choice,
 * so that nobody outside can make one that a healthy device gets wrong. */
#ifndef FRONT_WORKERS_PROOF_H
#define FRONT_WORKERS_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire.h"
#include "front/jobs/plans.h"
#include "front/workers/supervisor.h"

/* The tiles in an arena of their own, numbered PROOF_ARENA, and what must come of them: one through
 * filters of every kind, and, if a plan is in doubt, one through each of its filters alone, by the
 * same kernels on its kind of pixels. */
struct proof;

enum { PROOF_ARENA = 1000 };

/* The job of test tiles, which no client's has. */
#define PROOF_JOB UINT64_MAX

/* plan: NULL if none is in doubt; it is only looked at. kernels: a bit for each that filtered by
 * it. NULL without memory or descriptors. */
struct proof *proof_new(const struct plan *plan, uint64_t kernels);
void proof_free(struct proof **proof);

/* Gives the tiles to a device that is up and has none of them. False if the device failed on that.
 * The proof can be given again to the device's next worker. */
bool proof_send(struct proof *proof, struct worker *worker);
/* Has the worker forget the tiles' arena and plans, once all are back. */
void proof_withdraw(const struct proof *proof, struct worker *worker);
/* The worker is gone, and the tiles with it. */
void proof_lost(struct proof *proof);

/* loop_now() when the tiles were sent; 0 if none is out. */
uint64_t proof_sent(const struct proof *proof);
/* A tile waits for a program, for so many milliseconds at most; the most that any of them does. */
void proof_waits(struct proof *proof, uint32_t ms);
uint32_t proof_wait(const struct proof *proof);

enum proof_result { PROOF_OPEN, PROOF_RIGHT, PROOF_WRONG };

/* What a tile that came back says of the device, PROOF_OPEN while more are to come; logs what is
 * wrong. What the device cannot do at all (a variant that does not apply) is not. */
enum proof_result proof_take(struct proof *proof, const struct message_tile_done *done);

#endif
