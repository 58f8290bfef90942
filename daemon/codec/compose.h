/* Composing: from the result's rows to the answer's. */
#ifndef CODEC_COMPOSE_H
#define CODEC_COMPOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/decode.h"
#include "codec/tiles.h"
#include "common/error.h"
#include "common/tile.h"
#include "common/wire.h"

struct composer;

/* The size of the answer to a result of this tiling: the result's, or with a target the whole
 * image's. ERR_BAD_PARAMETER if the result would not lie inside. */
enum error compose_size(const struct message_job *job, const struct decoded *decoded,
                        const struct tiling *tiling, uint32_t *width, uint32_t *height,
                        struct problem *problem) MUST_CHECK;

/* Prepares the answer's rows from those of `tiles`, and with a target opens the body a second time.
 * Body and tiles stay the caller's and must outlive the composer. */
enum error compose_open(struct composer **composer, const struct message_job *job, int body,
                        struct tiles *tiles, struct problem *problem) MUST_CHECK;
void compose_close(struct composer **composer);

/* A row of the answer, as it comes from the devices, once it is there; valid until the next call.
 * Rows must not go back. NULL if the job was stopped, which a failure in here does too. */
const uint8_t *compose_row(struct composer *composer, uint32_t y);

/* The rows above this one are done with: slots of theirs are given back. */
void compose_free_above(struct composer *composer, uint32_t y);

/* To be called in the thread that took rows when it takes no more. */
void compose_leave(struct composer *composer);

bool compose_stopped(const struct composer *composer);

#endif
