/* The job that a codec worker is working on: its slots, shared by the thread that decodes, the thread
 * that encodes and the one that listens to the front.
 *
 * A slot is made (decoder), filtered (device), read (encoder), and free again, in the order of the
 * tiles. All of that state is under one lock; waiting for it is the only flow control. */
#ifndef CODEC_TILES_H
#define CODEC_TILES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/wire.h"

struct tiles {
	int socket;             /* to the front */
	struct arena arena;
	uint32_t arena_number;

	/* Of one job; set before the threads start, then read only. */
	struct message_job job;
	struct chain *chain;
	struct tiling tiling;
	double border_pixel[BANDS_MAX];

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool active;            /* a job is under way: messages for it are taken */
	uint32_t made;          /* tiles announced to the front */
	uint32_t read;          /* tiles whose slot the encoder has freed */
	bool filtered[SLOTS_MAX];
	enum error error;       /* the first that any thread met */
	struct problem problem;
};

/* Prepares for a job whose tiling is set. */
void tiles_begin(struct tiles *tiles);

/* Ends the job with an error, unless it has already one: every wait returns. */
void tiles_fail(struct tiles *tiles, enum error error, const struct problem *problem);
bool tiles_failed(struct tiles *tiles);

/* Waits until tile i may be made, adding the time to *waited (ns). False if the job has failed. */
bool tiles_wait_free(struct tiles *tiles, uint32_t i, uint64_t *waited);

/* Completes tile i, of which the rows of the image that no earlier tile has are in place (from
 * tiles_row()): takes the others from the tile before, fills in what lies outside the image, and
 * announces it. head and tail: the image's first and last rows (as many as the halo, at most all), NULL unless
 * the border is wrap. */
void tiles_complete(struct tiles *tiles, uint32_t i, const uint8_t *head, const uint8_t *tail);

/* Where row y of the image (its pixel 0) goes in tile i's input. */
uint8_t *tiles_row(const struct tiles *tiles, uint32_t i, int64_t y);

/* The rows [*first, *end) of the image that tile i has and no earlier one. */
void tiles_new_rows(const struct tiles *tiles, uint32_t i, uint32_t *first, uint32_t *end);

/* Takes a device's word on a tile. */
void tiles_take_done(struct tiles *tiles, const struct message_tile_done *done);

/* Waits until tile i is filtered, adding the time to *waited; returns its first row, NULL if the job has failed. */
const uint8_t *tiles_wait_filtered(struct tiles *tiles, uint32_t i, uint64_t *waited);

/* Frees tile i's slot. */
void tiles_free_slot(struct tiles *tiles, uint32_t i);

/* The monotonic clock, in ns. */
uint64_t tiles_now(void);

#endif
