/* Composing: from the result's rows to the answer's. */
#ifndef CODEC_COMPOSE_H
#define CODEC_COMPOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/decode.h"
#include "codec/tiles.h"

struct composer;

/* The size of the answer to a result of this tiling: the result's, or with a target the whole
 * image's. ERR_BAD_PARAMETER if the result would exceed the image. */
enum error compose_size(const struct message_job *job, const struct decoded *decoded,
                        const struct tiling *tiling, uint32_t *width, uint32_t *height,
                        struct problem *problem) MUST_CHECK;

/* Prepares the answer's rows from those of `tiles`; with a target, opens the body a second time.
 * The caller keeps body and tiles, which must outlive the composer. */
enum error compose_open(struct composer **composer, struct tiles *tiles, int body,
                        struct problem *problem) MUST_CHECK;
void compose_close(struct composer **composer);

/* Waits for a row of the answer, in the devices' sample type; valid until the next call. Rows must
 * not go back. NULL if the job was stopped, which a failure here also does. */
const uint8_t *compose_row(struct composer *composer, uint32_t y);

/* The rows above this one are no longer needed: frees their slots. */
void compose_free_above(struct composer *composer, uint32_t y);

/* Call in the thread that took rows, when it takes no more. */
void compose_leave(struct composer *composer);

bool compose_stopped(const struct composer *composer);

#endif
